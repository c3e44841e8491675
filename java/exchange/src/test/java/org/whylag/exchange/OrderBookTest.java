package org.whylag.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class OrderBookTest {
    private final List<String> trades = new ArrayList<>();
    private final OrderBook book = new OrderBook(100);
    private final OrderBook.Trades record =
            (resting, price, quantity) -> trades.add(resting + ":" + quantity + "@" + price);

    @Test
    void restsWhenNobodyIsThere() {
        assertEquals(0, book.buy(1, 50, 10, record));
        assertEquals(0, book.sell(2, 51, 10, record));
        assertEquals(List.of(), trades);
    }

    @Test
    void tradesAtThePriceThatRested() {
        book.sell(1, 40, 10, record);
        assertEquals(4, book.buy(2, 50, 4, record));
        assertEquals(List.of("1:4@40"), trades);
    }

    @Test
    void bestPriceFirst() {
        book.sell(1, 52, 1, record);
        book.sell(2, 51, 1, record);
        book.sell(3, 53, 1, record);
        assertEquals(3, book.buy(4, 53, 3, record));
        assertEquals(List.of("2:1@51", "1:1@52", "3:1@53"), trades);
    }

    @Test
    void atOnePriceTheFirstFirst() {
        book.buy(1, 50, 1, record);
        book.buy(2, 50, 5, record);
        book.buy(3, 50, 1, record);
        assertEquals(3, book.sell(4, 50, 3, record));
        assertEquals(List.of("1:1@50", "2:2@50"), trades);
        trades.clear();
        book.sell(5, 1, 9, record);
        assertEquals(List.of("2:3@50", "3:1@50"), trades);
    }

    @Test
    void whatIsLeftRestsOnTheOtherSide() {
        book.sell(1, 50, 3, record);
        assertEquals(3, book.buy(2, 50, 10, record));
        trades.clear();
        assertEquals(7, book.sell(3, 50, 8, record));
        assertEquals(List.of("2:7@50"), trades);
        trades.clear();
        assertEquals(1, book.buy(4, 60, 1, record));
        assertEquals(List.of("3:1@50"), trades);
    }

    @Test
    void doesNotTradeThroughItsLimit() {
        book.sell(1, 51, 1, record);
        book.buy(2, 49, 1, record);
        assertEquals(0, book.buy(3, 50, 1, record));
        assertEquals(0, book.sell(4, 52, 1, record));
        assertEquals(List.of(), trades);
    }

    @Test
    void edgesOfTheRange() {
        assertTrue(book.hasPrice(0) && book.hasPrice(99));
        assertFalse(book.hasPrice(-1) || book.hasPrice(100));
        book.sell(1, 99, 1, record);
        assertEquals(1, book.buy(2, 99, 1, record));
        book.buy(3, 0, 1, record);
        assertEquals(1, book.sell(4, 0, 1, record));
        assertEquals(0, book.buy(5, 99, 1, record));
        assertEquals(1, book.sell(6, 0, 1, record));
    }

    private record Open(long id, int price, int[] quantity) {}

    /** Against a book so simple that it is seen to be right. */
    @Test
    void agreesWithASortedList() {
        List<Open> bids = new ArrayList<>();
        List<Open> asks = new ArrayList<>();
        List<String> expected = new ArrayList<>();
        Random random = new Random(1);
        for (long id = 0; id < 20_000; id++) {
            boolean buy = random.nextBoolean();
            int price = 45 + random.nextInt(11);
            int[] quantity = {1 + random.nextInt(9)};
            if (buy) {
                book.buy(id, price, quantity[0], record);
            } else {
                book.sell(id, price, quantity[0], record);
            }
            List<Open> others = buy ? asks : bids;
            for (Open other : others) {
                boolean meets = buy ? other.price <= price : other.price >= price;
                int traded = Math.min(quantity[0], other.quantity[0]);
                if (meets && traded > 0) {
                    expected.add(other.id + ":" + traded + "@" + other.price);
                    quantity[0] -= traded;
                    other.quantity[0] -= traded;
                }
            }
            others.removeIf(other -> other.quantity[0] == 0);
            if (quantity[0] > 0) {
                (buy ? bids : asks).add(new Open(id, price, quantity));
            }
            // Sorting is stable: time decides at one price.
            bids.sort(Comparator.comparingInt(each -> -each.price));
            asks.sort(Comparator.comparingInt(Open::price));
        }
        assertTrue(expected.size() > 10_000);
        assertEquals(expected, trades);
    }
}
