import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Transfers of which a relay answers the first request of each kind in the server's place.
@Suite(.timeLimit(.minutes(5)))
struct RelayedTransferTests {
    private final class RelayedFiles: FileTransport {
        private let relay: RelayAnswer
        /// The bytes that the server has of an attachment.
        private let sealed: Data
        let asked = Mutex<[String]>([])

        init(_ relay: RelayAnswer, sealed: Data = Data()) {
            self.relay = relay
            self.sealed = sealed
        }

        func exchange(
            _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
            received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
        ) async throws -> WebAnswer {
            let isFirst = asked.withLock { asked in
                defer { asked.append(request.method) }
                return !asked.contains(request.method)
            }
            let answer = isFirst ? relay.file(isHead: request.method == "HEAD") : right(request)
            if request.isFile(answer) { try await received(answer, answer.body) }
            return answer
        }

        private func right(_ request: FileRequest) -> WebAnswer {
            let name = ["carillon-server": "server-1"]
            switch request.method {
            case "POST":
                let fields = ["location": "/v1/attachments/x", "upload-offset": "0"]
                return WebAnswer(status: 201, headers: name.merging(fields) { $1 })
            case "HEAD": return WebAnswer(status: 204, headers: name.merging(["upload-offset": "0"]) { $1 })
            case "PATCH":
                let whole = #"{"id":"x","expiresAt":"2099-01-31T12:00:00.000Z"}"#
                return WebAnswer(status: 200, headers: name, body: Data(whole.utf8))
            case "GET":
                let range = "bytes 0-\(sealed.count - 1)/\(sealed.count)"
                return WebAnswer(status: 206, headers: name.merging(["content-range": range]) { $1 }, body: sealed)
            default: return WebAnswer(status: 204, headers: name)
            }
        }
    }

    private let directory = TemporaryDirectory()

    private func store(_ files: RelayedFiles, _ failures: FailureNote = FailureNote()) -> AttachmentStore {
        AttachmentStore(
            directory: directory.path + "/state",
            server: TransferAPI(
                base: "http://127.0.0.1:1", transport: files,
                backOff: .init(initial: .milliseconds(1), maximum: .milliseconds(5)), logger: Logger(label: "test"),
                failures: failures
            ) { "key" })
    }

    @Test(arguments: RelayAnswer.allCases)
    func `an upload continues to its end`(relay: RelayAnswer) async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let lines = LogCatcher()
        let (files, failures) = (RelayedFiles(relay), FailureNote(logger: lines.logger))
        let upload = try await store(files, failures).upload(directory.path + "/file", for: [.senders])
        #expect(try await upload.value.id == "x")
        #expect(files.asked.withLock { $0 } == ["POST", "POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        let message = failures.last?.message ?? ""
        #expect(message.contains("http://127.0.0.1:1/v1/attachments") && message.contains("status \(relay.status)"))
        #expect(failures.present?.message == nil)
        let warning = lines.warnings.first ?? ""
        #expect(warning.contains("address=http://127.0.0.1:1 ") && warning.contains("status \(relay.status)"))
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a download completes, and the server is notified`(relay: RelayAnswer) async throws {
        let (source, sealed) = (directory.path + "/source", directory.path + "/sealed")
        let content = Data((0..<1000).map { UInt8($0 % 251) })
        try content.write(to: URL(fileURLWithPath: source))
        let key = Data(repeating: 7, count: 32)
        let made = try SealedFile.make(of: try DiskFile(source, .reading), at: try DiskFile(sealed, .making), key: key)
        let manifest = AttachmentManifest(
            id: String(repeating: "0", count: 36), key: key, length: made.length, digest: made.digest, expiresAt: .now)
        let files = RelayedFiles(relay, sealed: try Data(contentsOf: URL(fileURLWithPath: sealed)))
        let path = directory.path + "/file"
        do {
            let failures = FailureNote()
            let download = try await store(files, failures).download(manifest, to: path)
            #expect(try await download.value == path)
            #expect(failures.last?.message.contains("status \(relay.status)") == true)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == content)
        #expect(files.asked.withLock { $0 } == ["GET", "GET", "DELETE"])
        let folder = TransferFolder(path: directory.path + "/state")
        #expect(folder.ids(.download) == [manifest.id], "the server does not know that the file was fetched")
        let next = store(files)
        let downloads = try await whenReleased { try next.downloads() }
        #expect(downloads.isEmpty)
        try await eventually { folder.ids(.download).isEmpty }
        #expect(files.asked.withLock { $0.last } == "DELETE")
        withExtendedLifetime(next) {}
    }

    @Test func `a whole response without the attachment's tag or length is not the file`() async throws {
        let manifest = AttachmentManifest(
            id: String(repeating: "0", count: 36), key: Data(count: 32), length: 10, digest: Data(count: 32),
            expiresAt: .now)
        let length = String(manifest.sealedLength)
        for headers in [
            ["content-length": length], ["content-length": "5", "etag": "\"\(manifest.id)\""],
            ["content-length": length, "etag": "\"other\""],
        ] {
            let files = Scripted(WebAnswer(status: 200, headers: headers, body: Data(count: 26)))
            let download = try await AttachmentStore(
                directory: directory.path + "/state-\(headers.count)-\(headers["etag"]?.count ?? 0)",
                server: TransferAPI(
                    base: "http://127.0.0.1:1", transport: files, backOff: .init(initial: .seconds(1000)),
                    logger: Logger(label: "test")
                ) { "key" }
            ).download(manifest, to: directory.path + "/file")
            try await eventually { files.isAsked.withLock { $0 } }
            await download.pause()
            #expect(files.received.withLock { $0 } == 0, "\(headers)")
        }
    }

    /// Counts the bytes of its answer that are taken.
    private final class Scripted: FileTransport {
        private let answer: WebAnswer
        let isAsked = Mutex(false)
        let received = Mutex(0)

        init(_ answer: WebAnswer) { self.answer = answer }

        func exchange(
            _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
            received take: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
        ) async throws -> WebAnswer {
            defer { isAsked.withLock { $0 = true } }
            if request.isFile(answer) { received.withLock { $0 += answer.body.count } }
            return answer
        }
    }
}
