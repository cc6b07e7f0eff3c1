import CarillonWire
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Fetches a sealed file and opens it while it arrives. After a lost connection it continues behind the last verified chunk (RFC
/// 9110 section 14).
struct DownloadRun: Sendable {
    let state: TransferFolder.DownloadState
    let folder: TransferFolder
    let server: TransferAPI

    private var id: String { state.manifest.id }
    private var location: String { "/v1/attachments/\(id)" }

    /// Whether the download is not complete.
    var isUnfinished: Bool { folder.ids(.download).contains(id) }

    func run(_ moved: @escaping @Sendable (Int64) -> Void) async throws -> String {
        do {
            if let known = try folder.read(TransferFolder.DownloadState.self, .download, of: id) {
                if known.isWhole != true { try await fetch(moved) }
                try await publish()
            }
        } catch let refused as CredentialRefused {
            throw refused.error
        } catch let error as PushError where Self.isFinal(error) {
            cancel()
            throw error
        }
        return state.path
    }

    /// The server refused the credential, which can be renewed. The download is kept, and continues when the app resumes it.
    private struct CredentialRefused: Error {
        var error: PushError
    }

    private static func isFinal(_ error: PushError) -> Bool {
        [.attachmentDamaged, .attachmentGone, .attachmentRefused, .fileExists].contains(error.code)
    }

    private func fetch(_ moved: @escaping @Sendable (Int64) -> Void) async throws {
        let state = state
        let file = try await DiskFile.work { () throws(PushError) in
            let file = try DiskFile(state.part, .going)
            return try OpeningFile(state.manifest, into: file)
        }
        try await server.persist { () async throws -> TransferAPI.Step<Void> in
            let start = file.offset
            moved(start)
            let isFile: @Sendable (WebAnswer) -> Bool = { Self.isPart($0, of: state.manifest, from: start) }
            let take: @Sendable (WebAnswer, Data) async throws(PushError) -> Void = {
                (answer: WebAnswer, bytes: Data) async throws(PushError) -> Void in
                let length = answer.headers["content-range"]?.split(separator: "/").last
                guard answer.status == 200 || length.flatMap({ Int64($0) }) == state.manifest.sealedLength else {
                    throw OpeningFile.damaged
                }
                try await DiskFile.work { () throws(PushError) in try file.take(bytes) }
                moved(file.received)
            }
            let outcome = try await server.send(
                "GET", location, [("Range", "bytes=\(start)-")], isFile: isFile, received: take,
                expecting: .content { (answer: WebAnswer) -> Bool? in isFile(answer) ? true : nil })
            file.interrupted()
            let hasMoved = file.offset > start
            if file.isWhole { return .done(()) }
            switch outcome {
            case .later(let hint): return .later(hint: hint, hasMoved: hasMoved)
            case .refused(let refusal) where refusal.status == 404 || refusal.status == 416:
                throw PushError(.attachmentGone, "The server has no such attachment for this device.")
            case .refused(let refusal) where refusal.status == 401 || refusal.status == 403:
                throw CredentialRefused(error: PushError(refusal))
            case .refused(let refusal): throw PushError(refusal)
            case .success: return .later(hint: nil, hasMoved: hasMoved)
            }
        }
        var whole = state
        whole.isWhole = true
        let known = whole
        try await DiskFile.work { () throws(PushError) in
            try file.finish()
            try folder.write(known, .download, of: id)
        }
    }

    /// Whether a response contains the bytes of an attachment from an offset on, in the form of the server: 206 with this offset,
    /// or 200 with the attachment's length and tag.
    private static func isPart(_ answer: WebAnswer, of manifest: AttachmentManifest, from start: Int64) -> Bool {
        switch answer.status {
        case 206: answer.headers["content-range"]?.hasPrefix("bytes \(start)-") == true
        case 200:
            start == 0 && answer.headers["content-length"] == String(manifest.sealedLength)
                && answer.headers["etag"]?.hasSuffix("\"\(manifest.id)\"") == true
        default: false
        }
    }

    /// Renames the partial file to its final name, unless an earlier process did so.
    private func publish() async throws {
        let state = state
        try await DiskFile.work { () throws(PushError) in
            if access(state.part, F_OK) == 0 { try DiskFile.publish(state.part, as: state.path) }
        }
        // The server can remove the attachment for this device. If the server does not answer, the next run notifies it.
        switch try? await server.remove(location) {
        case .success?: folder.remove(.download, id)
        case .refused(let refusal)? where refusal.status == 404: folder.remove(.download, id)
        case .refused?, .later?, nil: break
        }
    }

    /// Removes the state and the partial file.
    func cancel() {
        folder.remove(.download, id)
        unlink(state.part)
    }
}
