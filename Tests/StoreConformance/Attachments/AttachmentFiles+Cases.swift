import CarillonBasics
package import CarillonCore
package import CarillonWire
import Testing

extension AttachmentID {
    static func numbered(_ number: UInt64) -> AttachmentID { AttachmentID(Bytes16(high: number << 44, low: number)) }
}

extension AttachmentFiles {
    /// Adds bytes to an upload that has as many bytes as the offset, and makes them durable.
    func append(_ text: String, to id: AttachmentID, at offset: Int64 = 0) async throws {
        let file = try #require(try await openGrowing(id, at: offset))
        try await file.write(SomeBytes(text), at: offset)
        try await file.sync()
    }

    /// Makes an attachment with a content.
    func add(_ text: String, as id: AttachmentID) async throws {
        try await create(id)
        try await append(text, to: id)
        try await publish(id)
    }

    /// Returns the content of an attachment; nil if there is none.
    func content(of id: AttachmentID) async throws -> String? {
        guard let file = try await open(id) else { return nil }
        return String(decoding: try await file.read(at: 0, count: 1 << 20), as: UTF8.self)
    }

    func digest(of id: AttachmentID) async throws -> String { Hexadecimal.encode(try await digest(ofGrowing: id)) }

    /// Returns the ids of all pages.
    package func listed(before moment: Timestamp = Timestamp(milliseconds: .max)) async throws -> [AttachmentID] {
        var ids: [AttachmentID] = []
        var place: String?
        repeat {
            let page = try await list(after: place, before: moment)
            ids += page.ids
            place = page.next
        } while place != nil
        return ids
    }
}
