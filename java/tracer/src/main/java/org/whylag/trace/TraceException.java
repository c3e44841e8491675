package org.whylag.trace;

/** Why the tracer could not be set up, and what to do about it. Never thrown once messages flow. */
public final class TraceException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TraceException(String message) {
        super(message);
    }

    TraceException(String message, Throwable cause) {
        super(message, cause);
    }
}
