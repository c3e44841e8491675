package org.whylag.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class OptionsTest {
    @Test
    void readsAll() {
        Options options =
                Options.of(List.of("--seconds", "3", "--rate", "500", "--garbage", "--wait", "yielding"));
        assertEquals(3, options.seconds);
        assertEquals(500, options.rate);
        assertTrue(options.garbage);
        assertEquals("YieldingWaitStrategy", options.waitStrategy().getClass().getSimpleName());
    }

    @Test
    void refusesWhatItDoesNotKnow() {
        for (List<String> wrong :
                List.of(
                        List.of("--secnds", "3"),
                        List.of("--rate"),
                        List.of("--rate", "0"),
                        List.of("--rate", "many"),
                        List.of("--wait", "sleeping"),
                        List.of("--folder", "/nowhere"))) {
            assertThrows(IllegalArgumentException.class, () -> Options.of(wrong), wrong.toString());
        }
    }
}
