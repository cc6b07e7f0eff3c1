import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

extension WebAnswer {
    /// A refusal of the server.
    fileprivate static func problem(_ code: ErrorCode, headers: [String: String] = [:]) -> WebAnswer {
        let body = (try? JSONEncoder().encode(ProblemDocument(Refusal(code, "why")))) ?? Data()
        let fields = ["content-type": ProblemDocument.mediaType, "carillon-server": "server-1"]
        return WebAnswer(status: code.status, headers: fields.merging(headers) { $1 }, body: body)
    }
}

/// A server with the answers that a test sets.
private final class ScriptedFiles: FileTransport {
    let answers: Mutex<[WebAnswer]>
    let asked = Mutex<[String]>([])
    let addresses = Mutex<[String]>([])

    init(_ answers: [WebAnswer]) { self.answers = Mutex(answers) }

    func exchange(
        _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
        received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
    ) async throws -> WebAnswer {
        asked.withLock {
            $0.append("\(request.method) \(request.headers.first { $0.name == "Upload-Offset" }?.value ?? "")")
        }
        addresses.withLock { $0.append(request.address.text) }
        let answer = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let answer else { throw TransportFault(.unreachable, nil) }
        if request.isFile(answer) { try await received(answer, answer.body) }
        return answer
    }
}

/// Transfers with a server that returns wrong answers.
@Suite(.timeLimit(.minutes(5)))
struct TransferTests {
    private let directory = TemporaryDirectory()

    private func store(
        _ files: ScriptedFiles, longestWait: Duration = .milliseconds(5),
        repeatsRegistration: @escaping @Sendable (String) -> Bool = { _ in false }
    ) -> AttachmentStore {
        AttachmentStore(
            directory: directory.path + "/state",
            server: TransferAPI(
                base: "http://127.0.0.1:1", transport: files,
                backOff: .init(initial: .milliseconds(1), maximum: longestWait), logger: Logger(label: "test")
            ) {
                "key"
            } repeatsRegistration: {
                repeatsRegistration($0)
            })
    }

    private func code(_ work: () async throws -> Void) async -> PushError.Code? {
        do {
            try await work()
            return nil
        } catch {
            return (error as? PushError)?.code
        }
    }

    private var manifest: AttachmentManifest {
        AttachmentManifest(
            id: String(repeating: "0", count: 36), key: Data(count: 32), length: 10, digest: Data(count: 32),
            expiresAt: .now)
    }

    @Test(arguments: [
        ("bytes 0-25/27", PushError.Code.attachmentDamaged), ("bytes 0-25/*", .attachmentDamaged),
        ("bytes 1-25/26", .attachmentGone), ("", .attachmentGone),
    ])
    func `another part than the requested one is not accepted`(_ range: String, _ wanted: PushError.Code) async throws {
        let files = ScriptedFiles([
            WebAnswer(status: 206, headers: ["content-range": range], body: Data(count: 26)),
            .problem(.attachmentUnknown),
        ])
        let download = try await store(files).download(manifest, to: directory.path + "/file")
        #expect(await code { _ = try await download.value } == wanted)
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/file"))
    }

    @Test func `a server that cannot be reached is reported once`() async throws {
        try Data(count: 10).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let lines = LogCatcher()
        let files = ScriptedFiles([])
        let store = AttachmentStore(
            directory: directory.path + "/state",
            server: TransferAPI(
                base: "http://127.0.0.1:1/base", transport: files,
                backOff: .init(initial: .milliseconds(1), maximum: .milliseconds(2)), logger: lines.logger
            ) { "key" })
        let upload = try await store.upload(directory.path + "/file", for: [.senders])
        while files.asked.withLock({ $0.count }) < 5 { await Task.yield() }
        await upload.pause()
        #expect(lines.warnings.count == 1, "\(lines.warnings)")
        let line = lines.warnings.first ?? ""
        #expect(line.contains("address=http://127.0.0.1:1 ") && line.contains("retry-in-ms="))
    }

    @Test func `an upload that the server forgot begins anew, and requests its offset each time`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let whole = Data(#"{"id":"x","expiresAt":"2026-01-31T12:00:00.000Z"}"#.utf8)
        let files = ScriptedFiles([
            WebAnswer(status: 503, headers: [:]), begun, WebAnswer(status: 500, headers: [:]),
            WebAnswer(status: 204, headers: ["upload-offset": "7"]), .problem(.uploadOffsetMismatch),
            .problem(.attachmentUnknown), begun, WebAnswer(status: 200, headers: [:], body: whole),
        ])
        let store = store(files)
        let upload = try await store.upload(directory.path + "/file", for: [.senders])
        let manifest = try await upload.value
        #expect(manifest.id == "x" && manifest.length == 100)
        #expect(
            files.asked.withLock { $0 } == [
                "POST ", "POST ", "PATCH 0", "HEAD ", "PATCH 7", "HEAD ", "POST ", "PATCH 0",
            ])
        // The server does not have it any more: no request is sent.
        #expect(try store.uploads().isEmpty && left == ["lock"])
    }

    @Test(arguments: [
        "/v1/attachments/x", "/push-server/v1/attachments/x", "https://example.com/push-server/v1/attachments/x",
        "HTTP://push.example.com/v1/attachments/x?y=z",
    ])
    func `an upload continues at the client's own address of the server`(location: String) async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let whole = Data(#"{"id":"x","expiresAt":"2026-01-31T12:00:00.000Z"}"#.utf8)
        let files = ScriptedFiles([
            WebAnswer(status: 201, headers: ["location": location, "upload-offset": "0"]),
            WebAnswer(status: 200, headers: [:], body: whole),
        ])
        let upload = try await store(files).upload(directory.path + "/file", for: [.senders])
        #expect(try await upload.value.id == "x")
        #expect(files.addresses.withLock { $0.last } == "http://127.0.0.1:1/v1/attachments/x")
    }

    @Test(arguments: ["", "x", "/", "/v1/attachments", "/v1/attachments/", "/v2/attachments/x", "ftp://h/v1/attachments/x"])
    func `another address is no upload's`(location: String) {
        #expect(UploadRun.path(in: WebAnswer(status: 201, headers: ["location": location])) == nil)
    }

    @Test func `a transfer that is interrupted repeatedly but progresses does not wait longer each time`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let whole = Data(#"{"id":"x","expiresAt":"2026-01-31T12:00:00.000Z"}"#.utf8)
        let cuts = (1...20).flatMap {
            [WebAnswer(status: 500, headers: [:]), WebAnswer(status: 204, headers: ["upload-offset": "\($0)"])]
        }
        let files = ScriptedFiles([begun] + cuts + [WebAnswer(status: 200, headers: [:], body: whole)])
        // Doubled each time, a millisecond would be a quarter of an hour at the end.
        let upload = try await store(files, longestWait: .seconds(3600)).upload(directory.path + "/file", for: [.senders])
        #expect(try await upload.value.id == "x")
    }

    @Test func `the result of an upload is available until it is confirmed, also in another process`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let whole = Data(#"{"id":"x","expiresAt":"2099-01-31T12:00:00.000Z"}"#.utf8)
        let manifest: AttachmentManifest
        do {
            let files = ScriptedFiles([
                WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"]),
                WebAnswer(status: 200, headers: [:], body: whole),
            ])
            let upload = try await store(files).upload(directory.path + "/file", for: [.senders])
            upload.confirm()
            manifest = try await upload.value
            #expect(left == ["\(upload.id).upload", "lock"], "it was not done when it was confirmed")
        }
        // The process ended before the sealed file went.
        let id = try #require(left.first).dropLast(7)
        try Data(count: 5).write(to: URL(fileURLWithPath: "\(directory.path)/state/\(id).sealed"))
        let next = store(ScriptedFiles([]))
        let uploads = try await whenReleased { try next.uploads() }
        let again = try #require(uploads.first)
        #expect(try await again.value == manifest && left.count == 2)
        #expect(try next.uploads().map(\.id) == [again.id])
        again.confirm()
        #expect(try next.uploads().isEmpty && left == ["lock"])
    }

    /// The stored transfers.
    private var left: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/state")) ?? []).sorted()
    }

    @Test func `progress also ends for a late reader, and a failed transfer continues when it is resumed`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let whole = Data(#"{"id":"x","expiresAt":"2026-01-31T12:00:00.000Z"}"#.utf8)
        let files = ScriptedFiles([
            .problem(.credentialInvalid), begun, WebAnswer(status: 200, headers: [:], body: whole),
        ])
        let upload = try await store(files).upload(directory.path + "/file", for: [.senders])
        #expect(await code { _ = try await upload.value } == .attachmentRefused)
        for await _ in upload.progress {}
        #expect(await code { _ = try await upload.value } == .attachmentRefused)
        upload.resume()
        #expect(try await upload.value.id == "x")
        for await _ in upload.progress {}
        upload.resume()
        #expect(try await upload.value.id == "x")
        #expect(files.asked.withLock { $0.count } == 3)
    }

    /// The process ended at one of the steps by which a whole file gets its name.
    @Test(arguments: ["before", "between"])
    func `a complete download gets its name, and is not fetched again`(_ moment: String) async throws {
        let path = directory.path + "/file"
        let store = store(ScriptedFiles([]))
        _ = try store.downloads()
        let folder = TransferFolder(path: directory.path + "/state")
        let state = TransferFolder.DownloadState(manifest: manifest, path: path, isWhole: true)
        let part = state.part
        try folder.write(state, .download, of: manifest.id)
        try Data("whole".utf8).write(to: URL(fileURLWithPath: part))
        if moment == "between" { try FileManager.default.linkItem(atPath: part, toPath: path) }
        let download = try #require(try store.downloads().first)
        #expect(try await download.value == path)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("whole".utf8))
        #expect(!FileManager.default.fileExists(atPath: part))
        #expect(try store.downloads().isEmpty)
    }

    @Test func `a download with its final name is done, and the server is notified until it confirms`() async throws {
        let path = directory.path + "/file"
        let folder = TransferFolder(path: directory.path + "/state")
        let state = TransferFolder.DownloadState(manifest: manifest, path: path, isWhole: true)
        try FileManager.default.createDirectory(atPath: directory.path + "/state", withIntermediateDirectories: true)
        try folder.write(state, .download, of: manifest.id)
        // The first server is away, the second refuses the credential, and the third has it removed already.
        for answers in [[], [.problem(.credentialInvalid)], [.problem(.attachmentUnknown)]] as [[WebAnswer]] {
            let isDone = answers.first?.status == 404
            let files = ScriptedFiles(answers)
            let store = store(files)
            let downloads = try await whenReleased { try store.downloads() }
            #expect(downloads.isEmpty)
            try await eventually { files.asked.withLock { $0 } == ["DELETE "] }
            try await eventually { folder.ids(.download).isEmpty == isDone }
        }
        #expect(left == ["lock"])
    }

    @Test(arguments: [ErrorCode.credentialInvalid, .roleForbidden])
    func `a download whose credential the server refuses stays`(_ refused: ErrorCode) async throws {
        let files = ScriptedFiles([.problem(refused), .problem(.attachmentUnknown)])
        let download = try await store(files).download(manifest, to: directory.path + "/file")
        #expect(await code { _ = try await download.value } == .attachmentRefused)
        let folder = TransferFolder(path: directory.path + "/state")
        #expect(folder.ids(.download) == [manifest.id])
        download.resume()
        #expect(await code { _ = try await download.value } == .attachmentGone)
        #expect(folder.ids(.download).isEmpty)
    }

    @Test func `transfers go on when the registration is repeated after the server refused its credential`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let whole = Data(#"{"id":"x","expiresAt":"2099-01-31T12:00:00.000Z"}"#.utf8)
        let files = ScriptedFiles([
            .problem(.credentialInvalid), begun, WebAnswer(status: 200, headers: [:], body: whole),
            .problem(.credentialInvalid), .problem(.attachmentUnknown),
        ])
        let refused = Mutex<[String]>([])
        let store = store(files) { credential in
            refused.withLock { $0.append(credential) }
            return true
        }
        let upload = try await store.upload(directory.path + "/file", for: [.senders])
        #expect(try await upload.value.id == "x")
        let download = try await store.download(manifest, to: directory.path + "/other")
        #expect(await code { _ = try await download.value } == .attachmentGone)
        #expect(refused.withLock { $0 } == ["key", "key"])
    }

    @Test(arguments: [ErrorCode.credentialInvalid, .roleForbidden])
    func `an upload whose credential the server refuses stays`(_ refused: ErrorCode) async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let whole = Data(#"{"id":"x","expiresAt":"2099-01-31T12:00:00.000Z"}"#.utf8)
        let files = ScriptedFiles([.problem(refused), begun, WebAnswer(status: 200, headers: [:], body: whole)])
        let store = store(files)
        let upload = try await store.upload(directory.path + "/file", for: [.senders])
        #expect(await code { _ = try await upload.value } == .attachmentRefused)
        #expect(try store.uploads().map(\.id) == [upload.id])
        upload.resume()
        #expect(try await upload.value.id == "x")
    }

    @Test func `a paused transfer stays, and continues in another store; a cancelled one is deleted`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        let path = directory.path + "/file"
        do {
            let store = store(ScriptedFiles([]))
            let upload = try await store.upload(path, for: [.senders], moves: true)
            #expect(!FileManager.default.fileExists(atPath: path))
            await upload.pause()
            #expect(try store.uploads().map(\.id) == [upload.id])
            #expect(throws: PushError.self) { try self.store(ScriptedFiles([])).uploads() }
        }
        let id: String
        do {
            let next = store(ScriptedFiles([]))
            let uploads = try await whenReleased { try next.uploads() }
            let again = try #require(uploads.first)
            id = again.id
            try await again.cancel()
            #expect(try next.uploads().isEmpty)
            #expect(left == ["\(id).upload", "lock"], "the sealed file is gone, and the server does not know yet")
        }
        // The store before does not keep the directory, though its server is away.
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let files = ScriptedFiles([begun, WebAnswer(status: 204, headers: ["carillon-server": "server-1"])])
        let last = store(files)
        let uploads = try await whenReleased { try last.uploads() }
        #expect(uploads.isEmpty)
        try await eventually { left == ["lock"] }
        #expect(files.asked.withLock { $0 } == ["POST ", "DELETE "])
        withExtendedLifetime(last) {}
    }

    @Test func `an upload whose creation was not answered is deleted from the server, too`() async throws {
        try Data(count: 100).write(to: URL(fileURLWithPath: directory.path + "/file"))
        do {
            let upload = try await store(ScriptedFiles([])).upload(directory.path + "/file", for: [.senders])
            await upload.pause()
        }
        let begun = WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
        let files = ScriptedFiles([begun, WebAnswer(status: 204, headers: ["carillon-server": "server-1"])])
        let uploads = try await whenReleased { try store(files).uploads() }
        let upload = try #require(uploads.first)
        try await upload.cancel()
        #expect(files.asked.withLock { $0 } == ["POST ", "DELETE "])
        #expect(left == ["lock"])
    }
}
