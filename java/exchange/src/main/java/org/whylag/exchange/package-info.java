/**
 * A small exchange, as a place where messages are slow for known reasons.
 *
 * <pre>
 *   Load --UDP--> receiver --ring--+--> journal (file, fsync by batch) ----+--> matching --ring--> reports --UDP--> Load
 *                                  +--> replicate (TCP to another process) +            --ring--> trades  --UDP--> Load
 * </pre>
 *
 * <p>{@link org.whylag.exchange.Exchange} starts the parts, each a process of its own: the
 * {@link org.whylag.exchange.Engine}, the {@link org.whylag.exchange.Replica}, and the
 * {@link org.whylag.exchange.Load}, which measures from outside.
 */
package org.whylag.exchange;
