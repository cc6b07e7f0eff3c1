import CarillonBasics
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A reply that a handler returned and whose files the server does not have yet. The next run continues the reply without a call
/// of the handler.
struct ReplyDraft: Equatable, Sendable {
    struct File: Equatable, Sendable {
        /// The path that the app returned, in the form of ``StoragePaths``.
        var path: String
        var name: RelativePath
        /// The id of the upload; nil before the upload begins.
        var upload: String?
    }

    /// The value: a ``SealedPayload`` without files.
    var payload: [UInt8]
    var files: [File]

    var uploads: Set<String> { Set(files.compactMap(\.upload)) }

    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceFailed`` if the draft has no value.
    func value() throws(ServiceError) -> ServiceValue {
        guard case .value(let value) = try SealedPayload(payload).content else {
            throw ServiceError(.serviceFailed, "The stored reply has no value.")
        }
        return value
    }
}

extension ReplyDraft {
    /// Returns nil if the columns are empty or cannot be read.
    init?(stored payload: Data?, files text: String?) {
        guard let payload, let text, case .array(let list)? = JSONValue(parsing: Array(text.utf8)) else { return nil }
        self.payload = Array(payload)
        files = []
        for file in list {
            guard case .string(let path)? = file["path"], case .string(let text)? = file["name"],
                let name = RelativePath(text)
            else { return nil }
            var upload: String?
            if case .string(let id)? = file["upload"] { upload = id }
            files.append(File(path: path, name: name, upload: upload))
        }
    }

    fileprivate var text: String {
        let list = files.map { file -> JSONValue in
            var members: [JSONValue.Member] = [
                .init(name: "path", value: .string(file.path)), .init(name: "name", value: .string(file.name.text)),
            ]
            if let upload = file.upload { members.append(.init(name: "upload", value: .string(upload))) }
            return JSONValue.object(members)
        }
        return String(decoding: JSONValue.array(list).bytes, as: UTF8.self)
    }
}

/// The row of a reply that is ready to be posted has no draft. It has the ids of the reply's files on the server instead.
extension ReplyDraft {
    static func post(_ files: [String], of number: Int64, _ db: Database) throws {
        let text = String(decoding: JSONValue.array(files.map { .string($0) }).bytes, as: UTF8.self)
        // The request may have been removed with its user.
        try db.run(
            """
            INSERT OR REPLACE INTO service_draft (number, payload, files)
            SELECT number, ?, ? FROM service_event WHERE number = ?
            """, [Data([0]), text, number])
    }

    static func postedFiles(_ text: String?) -> [String] {
        guard let text, case .array(let list)? = JSONValue(parsing: Array(text.utf8)) else { return [] }
        return list.compactMap { if case .string(let id) = $0 { id } else { nil } }
    }
}

extension ServiceBox {
    /// Stores the reply to a request, with the uploads that have begun.
    func save(_ draft: ReplyDraft, of number: Int64) async throws(PushError) {
        try await store.write { db in
            // The request may have been removed with its user.
            try db.run(
                """
                INSERT OR REPLACE INTO service_draft (number, payload, files)
                SELECT number, ?, ? FROM service_event WHERE number = ?
                """, [Data(draft.payload), draft.text, number])
        }
    }

    func draft(of number: Int64) async throws(PushError) -> ReplyDraft? {
        try await store.write(reachingDisk: false) { db in
            guard let row = try Row.first(db, "SELECT payload, files FROM service_draft WHERE number = ?", [number]) else {
                return nil
            }
            return ReplyDraft(stored: row[0], files: row[1])
        }
    }

    /// Returns the ids of the uploads that drafts continue.
    func draftUploads() async throws(PushError) -> Set<String> {
        try await store.write(reachingDisk: false) { db in
            var uploads: Set<String> = []
            for row in try Row.all(db, "SELECT payload, files FROM service_draft") {
                uploads.formUnion(ReplyDraft(stored: row[0], files: row[1])?.uploads ?? [])
            }
            return uploads
        }
    }
}
