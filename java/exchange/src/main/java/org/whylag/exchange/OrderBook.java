package org.whylag.exchange;

/**
 * An order book by price, then time: the best price trades first, and at one price the order that came
 * first. It allocates only while it grows.
 */
final class OrderBook {
    /** Called for each trade, at the price of the order that rested. */
    interface Trades {
        void trade(long restingId, int price, int quantity);
    }

    private static final class Resting {
        long id;
        int quantity;
        Resting next;
    }

    /** Orders at one price, in order of arrival. */
    private static final class Level {
        Resting first;
        Resting last;
    }

    private final Level[] bids;
    private final Level[] asks;
    private int bestBid = -1;
    private int bestAsk;
    private Resting spare;

    /** Prices are 0 to {@code prices} - 1 ticks. */
    OrderBook(int prices) {
        bids = levels(prices);
        asks = levels(prices);
        bestAsk = prices;
    }

    private static Level[] levels(int prices) {
        Level[] levels = new Level[prices];
        for (int price = 0; price < prices; price++) {
            levels[price] = new Level();
        }
        return levels;
    }

    boolean hasPrice(int price) {
        return price >= 0 && price < bids.length;
    }

    /** Buys up to {@code price}; what finds no seller rests. Returns the quantity traded. */
    int buy(long id, int price, int quantity, Trades trades) {
        int open = quantity;
        while (open > 0 && bestAsk <= price) {
            open = take(asks[bestAsk], bestAsk, open, trades);
            while (bestAsk < asks.length && asks[bestAsk].first == null) {
                bestAsk++;
            }
        }
        if (open > 0) {
            rest(bids[price], id, open);
            bestBid = Math.max(bestBid, price);
        }
        return quantity - open;
    }

    /** Sells down to {@code price}; what finds no buyer rests. Returns the quantity traded. */
    int sell(long id, int price, int quantity, Trades trades) {
        int open = quantity;
        while (open > 0 && bestBid >= price) {
            open = take(bids[bestBid], bestBid, open, trades);
            while (bestBid >= 0 && bids[bestBid].first == null) {
                bestBid--;
            }
        }
        if (open > 0) {
            rest(asks[price], id, open);
            bestAsk = Math.min(bestAsk, price);
        }
        return quantity - open;
    }

    private int take(Level level, int price, int quantity, Trades trades) {
        int open = quantity;
        while (open > 0 && level.first != null) {
            Resting resting = level.first;
            int traded = Math.min(open, resting.quantity);
            open -= traded;
            resting.quantity -= traded;
            trades.trade(resting.id, price, traded);
            if (resting.quantity == 0) {
                level.first = resting.next;
                resting.next = spare;
                spare = resting;
            }
        }
        return open;
    }

    private void rest(Level level, long id, int quantity) {
        Resting resting = spare != null ? spare : new Resting();
        spare = resting.next;
        resting.id = id;
        resting.quantity = quantity;
        resting.next = null;
        if (level.first == null) {
            level.first = resting;
        } else {
            level.last.next = resting;
        }
        level.last = resting;
    }
}
