import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The sockets between apps of one machine, and peers that send invalid data to them.
@Suite(.timeLimit(.minutes(5)))
final class LocalSocketsTests: Sendable {
    private let root: String
    private let device = String(repeating: "a", count: 32)
    private let taken = Mutex<[[UInt8]]>([])

    init() throws {
        // A socket's path is short.
        root = "/tmp/carillon-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    private func listen(_ sockets: LocalSockets, takes: Bool = true) async throws -> any NIOCore.Channel {
        try await sockets.listen(as: device) { [self] bytes in
            taken.withLock { $0.append(bytes) }
            return takes
        }
    }

    @Test func `an event is accepted or rejected, and its sender is notified`() async throws {
        let sockets = LocalSockets(directory: root + "/local")
        #expect(await !sockets.send([1], to: device))
        let listener = try await listen(sockets)
        #expect(await sockets.send([1, 2, 3], to: device))
        let largest = [UInt8](repeating: 7, count: LocalSockets.mostBytes)
        #expect(await sockets.send(largest, to: device))
        #expect(await !sockets.send(largest + [7], to: device))
        #expect(taken.withLock { $0 } == [[1, 2, 3], largest])
        try await listener.close()
        #expect(await !sockets.send([1], to: device))
        let refusing = try await listen(sockets, takes: false)
        #expect(await !sockets.send([1], to: device))
        try await refusing.close()
        let mode = try FileManager.default.attributesOfItem(atPath: root + "/local")[.posixPermissions] as? Int
        #expect(mode == 0o700)
    }

    private func connect(to path: String) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(unixDomainSocketPath: path) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
    }

    /// Sends some bytes, and waits until the other end closes.
    private func bytesBack(_ bytes: [UInt8], on channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>) async throws -> Int {
        try await channel.executeThenClose { inbound, outbound in
            try? await outbound.write(ByteBuffer(bytes: bytes))
            var count = 0
            do { for try await buffer in inbound { count += buffer.readableBytes } } catch {}
            return count
        }
    }

    @Test(
        arguments: [
            [0xFF, 0xFF, 0xFF, 0xFF], [0x00, 0x01, 0x00, 0x01, 1], [0, 0, 0, 1, 7, 7], Array("GET / HTTP/1.1\r\n\r\n".utf8),
        ] as [[UInt8]])
    func `an invalid event is rejected`(_ bytes: [UInt8]) async throws {
        // The connection is closed because of its bytes: its time does not end during the test.
        let sockets = LocalSockets(directory: root + "/local", timeout: .hours(1))
        let listener = try await listen(sockets)
        let channel = try await connect(to: sockets.path(of: device))
        #expect(try await bytesBack(bytes, on: channel) == 0)
        #expect(taken.withLock { $0 }.isEmpty)
        #expect(await sockets.send([1], to: device), "others are heard all the same")
        try await listener.close()
    }

    @Test func `a silent connection keeps its place for a limited time, and the number of places is limited`() async throws {
        let sockets = LocalSockets(directory: root + "/local")
        let listener = try await listen(sockets)
        let begun = ContinuousClock.now
        let path = sockets.path(of: device)
        try await withThrowingTaskGroup(of: Int.self) { group in
            // The listener accepts them in this order, and before the connection that follows.
            for _ in 0..<LocalSockets.mostAtOnce {
                let channel = try await connect(to: path)
                group.addTask { try await self.bytesBack([0, 0], on: channel) }
            }
            try await Task.sleep(for: .milliseconds(300))
            let isTaken = await sockets.send([1], to: device)
            // On a busy machine the listener can have ended the first of them by now.
            #expect(!isTaken || begun.duration(to: .now) >= .seconds(5))
            for try await count in group { #expect(count == 0) }
        }
        #expect(await sockets.send([1], to: device))
        try await listener.close()
    }

    @Test func `a directory that is not one's own alone is refused`() async throws {
        let files = FileManager.default
        try files.createDirectory(
            atPath: root + "/open", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o710])
        try files.createDirectory(
            atPath: root + "/own", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try files.createSymbolicLink(atPath: root + "/link", withDestinationPath: root + "/own")
        let long = root + "/" + String(repeating: "x", count: 80)
        for directory in [root + "/open", root + "/link", long, root + "/no/where"] {
            await #expect(throws: PushError.self) { _ = try await listen(LocalSockets(directory: directory)) }
        }
        let listener = try await listen(LocalSockets(directory: root + "/own"))
        try await listener.close()
    }
}
