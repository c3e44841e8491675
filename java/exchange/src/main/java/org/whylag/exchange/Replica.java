package org.whylag.exchange;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** The second process: takes batches and answers each with the number of orders so far. */
final class Replica {
    public static void main(String[] arguments) throws IOException {
        Part.endWithParent();
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            System.out.println(server.getLocalPort());
            try (Socket engine = server.accept()) {
                engine.setTcpNoDelay(true);
                serve(new DataInputStream(engine.getInputStream()), new DataOutputStream(engine.getOutputStream()));
            }
        }
    }

    private static void serve(DataInputStream in, DataOutputStream out) throws IOException {
        byte[] batch = new byte[0];
        long orders = 0;
        try {
            while (true) {
                int length = in.readInt();
                if (length > batch.length) {
                    batch = new byte[length];
                }
                in.readFully(batch, 0, length);
                orders += length / Wire.LENGTH;
                out.writeLong(orders);
            }
        } catch (EOFException e) {
            // The engine has stopped.
        }
    }

    private Replica() {}
}
