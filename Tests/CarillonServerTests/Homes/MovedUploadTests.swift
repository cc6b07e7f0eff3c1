import CarillonBasics
import CarillonCore
import CarillonWire
import NIOCore
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Uploads at a home that releases a shard.
@Suite(.timeLimit(.minutes(5)))
struct MovedUploadTests {
    /// A request that uploads four bytes when the test starts it.
    private struct Sender {
        let task: Task<CarillonCore.Attachment, any Error>
        private let started = Signal()
        private let more = Signal()

        init(to attachment: CarillonCore.Attachment, of owner: AttachmentUser, in attachments: Attachments) {
            task = Task { [started, more] in
                try await attachments.append(
                    to: attachment.id, of: owner, at: 0, contentDigest: nil, isLast: true
                ) { upload in
                    started.send()
                    await more.wait()
                    try Task.checkCancellation()
                    _ = try await upload.write(ByteBuffer(string: "data"))
                }
            }
        }

        func hasStarted() async { await started.wait() }
        func goOn() { more.send() }
    }

    @Test func `uploads of a shard that is released end, and uploads of other shards continue`() async throws {
        let directory = TemporaryDirectory()
        let fixture = try await RouteFixture(attachmentFiles: stores.factory.attachmentFiles(of: directory.path))
        let (domain, attachments) = (fixture.domain, fixture.domain.attachments)
        let registered = try await fixture.device()
        let device = try await domain.devices.find(try #require(DeviceID(registered.id)))
        let owner = AttachmentUser(app: device.app, principal: .device(device.serial))
        func begin() async throws -> CarillonCore.Attachment {
            try await attachments.begin(
                owner, length: 4, digest: nil, readers: [.senders], lifetimeSeconds: 60, idempotency: nil)
        }
        let moving = try await begin()
        var staying = try await begin()
        while Shard(of: staying.id) == Shard(of: moving.id) { staying = try await begin() }
        let senders = [moving, staying].map { Sender(to: $0, of: owner, in: attachments) }
        for sender in senders { await sender.hasStarted() }
        #expect(await domain.release(Shard(of: moving.id)))
        for sender in senders { sender.goOn() }
        await #expect(throws: Refusal.uploadMoves) { try await senders[0].task.value }
        #expect(try await senders[1].task.value.isComplete)
        // The sender tries again.
        let again = Sender(to: moving, of: owner, in: attachments)
        again.goOn()
        #expect(try await again.task.value.isComplete)
    }
}
