import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Transfers that are under way when the storage directory is moved, as iOS moves it with each update of an app.
@Suite(.timeLimit(.minutes(5)))
struct MovedTransfersTests {
    /// Serves one sealed file, and accepts one upload; or is away.
    private final class Server: FileTransport {
        let sealed = Mutex(Data())
        let isAway = Mutex(true)
        let ranges = Mutex<[String]>([])

        func exchange(
            _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
            received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
        ) async throws -> WebAnswer {
            guard !isAway.withLock({ $0 }) else { throw TransportFault(.unreachable, nil) }
            switch request.method {
            case "GET":
                let range = request.headers.first { $0.name == "Range" }?.value ?? ""
                ranges.withLock { $0.append(range) }
                let start = Int(range.drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
                let sealed = sealed.withLock { $0 }
                let answer = WebAnswer(
                    status: 206, headers: ["content-range": "bytes \(start)-\(sealed.count - 1)/\(sealed.count)"])
                try await received(answer, Data(sealed.dropFirst(start)))
                return answer
            case "POST":
                return WebAnswer(status: 201, headers: ["location": "/v1/attachments/x", "upload-offset": "0"])
            case "PATCH":
                return WebAnswer(
                    status: 200, headers: [:], body: Data(#"{"id":"x","expiresAt":"2099-01-31T12:00:00.000Z"}"#.utf8))
            default: return WebAnswer(status: 204, headers: ["carillon-server": "server"])
            }
        }
    }

    private let directory = TemporaryDirectory()
    private let server = Server()

    private func store(in storage: String) -> AttachmentStore {
        AttachmentStore(
            directory: storage + "/services", storage: storage,
            server: TransferAPI(
                base: "http://127.0.0.1:1", transport: server,
                backOff: .init(initial: .milliseconds(1), maximum: .milliseconds(5)), logger: Logger(label: "test")
            ) { "key" })
    }

    private func served(_ content: Data) throws -> AttachmentManifest {
        let (plain, sealed) = (directory.path + "/plain", directory.path + "/plain.sealed")
        try content.write(to: URL(fileURLWithPath: plain))
        let (made, key) = try SteadyFile(path: plain).seal(to: sealed)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: sealed))
        server.sealed.withLock { $0 = bytes }
        return AttachmentManifest(
            id: String(repeating: "0", count: 36), key: key, length: made.length, digest: made.digest,
            expiresAt: .distantFuture)
    }

    @Test func `an upload and a download go on where the directory is by then`() async throws {
        let (first, second) = (directory.path + "/first", directory.path + "/second")
        let content = Data(repeating: 7, count: 3 * ChunkSeal.chunkBytes)
        let manifest = try served(content)
        let uploadID: String
        do {
            let store = store(in: first)
            let download = try await store.download(manifest, to: first + "/file")
            try content.write(to: URL(fileURLWithPath: directory.path + "/sent"))
            let upload = try await store.upload(directory.path + "/sent", for: [.senders])
            uploadID = upload.id
            await download.pause()
            await upload.pause()
            let state = try #require(
                try TransferFolder(path: first + "/services", storage: first).read(
                    TransferFolder.DownloadState.self, .download, of: manifest.id))
            // Two chunks were fetched before.
            try content.prefix(2 * ChunkSeal.chunkBytes).write(to: URL(fileURLWithPath: state.part))
        }
        try FileManager.default.moveItem(atPath: first, toPath: second)
        server.isAway.withLock { $0 = false }
        let store = store(in: second)
        let downloads = try await whenReleased { try store.downloadsWithPaths() }
        let download = try #require(downloads.first)
        #expect(download.path == second + "/file")
        let again = try await store.download(manifest, to: second + "/file")
        #expect(again.id == download.download.id, "it is the same download")
        #expect(try await again.value == second + "/file")
        #expect(try Data(contentsOf: URL(fileURLWithPath: second + "/file")) == content)
        #expect(server.ranges.withLock { $0 } == ["bytes=\(2 * ChunkSeal.sealedChunkBytes)-"])
        let upload = try #require(try store.uploads().first)
        #expect(try await upload.value.id == "x" && upload.id == uploadID)
        #expect(!FileManager.default.fileExists(atPath: first))
    }

    @Test(arguments: ["present", "former"])
    func `a download of an earlier version continues`(_ directoryThen: String) async throws {
        let storage = directory.path + "/store"
        let manifest = try served(Data(repeating: 1, count: 100))
        let root = directoryThen == "present" ? storage : "/former/store"
        let folder = storage + "/services"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(
            atPath: storage + "/Inbox/.gathering/3", withIntermediateDirectories: true)
        let state = TransferFolder.DownloadState(
            manifest: manifest, path: root + "/Inbox/.gathering/3/file")
        var members = try #require(
            try JSONSerialization.jsonObject(with: try JSONEncoder().encode(state)) as? [String: Any])
        // Earlier versions stored where the file grew.
        members["part"] = root + "/Inbox/.gathering/3/.00.part"
        try JSONSerialization.data(withJSONObject: members).write(
            to: URL(fileURLWithPath: "\(folder)/\(manifest.id).download"))
        server.isAway.withLock { $0 = false }
        let download = try #require(try store(in: storage).downloadsWithPaths().first)
        #expect(download.path == storage + "/Inbox/.gathering/3/file")
        #expect(try await download.download.value == download.path)
        #expect(FileManager.default.fileExists(atPath: download.path))
    }

    @Test func `the place where a download grows is not stored, and is beside its path`() throws {
        let manifest = try served(Data([1]))
        let folder = TransferFolder(path: directory.path, storage: directory.path + "/store")
        let path = directory.path + "/else where/file"
        try folder.write(TransferFolder.DownloadState(manifest: manifest, path: path), .download, of: manifest.id)
        let stored = try String(contentsOfFile: "\(directory.path)/\(manifest.id).download", encoding: .utf8)
        #expect(!stored.contains("part"))
        let state = try folder.read(TransferFolder.DownloadState.self, .download, of: manifest.id)
        #expect(state?.part == directory.path + "/else where/.0000000000000000.part")
    }

    @Test func `a file keeps its only name, and loses the name of its draft`() throws {
        let (draft, path) = (directory.path + "/.draft", directory.path + "/file")
        try Data([1]).write(to: URL(fileURLWithPath: path))
        try DiskFile.publish(path, as: path)
        try DiskFile.publish(directory.path + "/./file", as: path)
        #expect(FileManager.default.fileExists(atPath: path))
        // The process ended between the two names.
        try FileManager.default.linkItem(atPath: path, toPath: draft)
        try DiskFile.publish(draft, as: path)
        #expect(FileManager.default.fileExists(atPath: path))
        #expect(!FileManager.default.fileExists(atPath: draft))
    }
}
