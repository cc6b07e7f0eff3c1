import CarillonCore
import CarillonWire
import TestStores
import Testing

extension AttachmentFilesCase {
    static let readers: [AttachmentFilesCase] = [
        AttachmentFilesCase("a range is read, and ends with the attachment", rangesAreRead),
        AttachmentFilesCase("many read an attachment at once", attachmentIsReadAtOnce),
        AttachmentFilesCase("a reader of a removed attachment reads its bytes or fails", removedAttachmentIsRead),
        AttachmentFilesCase("a reader does not meet another attachment under the same id", formerAttachmentIsRead),
    ]
    static let lists: [AttachmentFilesCase] = [
        AttachmentFilesCase("the pages list everything", pagesListEverything),
        AttachmentFilesCase("what a sweep removes as it lists does not hide the rest", sweepListsTheRest),
        AttachmentFilesCase("what is newer is not listed", newerIsNotListed),
    ]
}

private func rangesAreRead(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let (id, bytes) = (AttachmentID.numbered(1), Array("0123456789".utf8))
    try await files.create(id)
    // The bytes can be in several objects.
    for part in [0..<4, 4..<7, 7..<10] {
        try await files.append(String(decoding: bytes[part], as: UTF8.self), to: id, at: Int64(part.lowerBound))
    }
    try await files.publish(id)
    let file = try #require(try await files.open(id))
    for start in 0...11 {
        for count in 0...12 {
            let wanted = Array(bytes.dropFirst(start).prefix(count))
            #expect(try await file.read(at: Int64(start), count: count) == wanted)
        }
    }
}

private func attachmentIsReadAtOnce(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.add("0123456789", as: id)
    let file = try #require(try await files.open(id))
    let parts = try await withThrowingTaskGroup(of: [UInt8].self) { group in
        for number in 0..<50 { group.addTask { try await file.read(at: Int64(number % 10), count: 1) } }
        return try await group.reduce(into: [UInt8]()) { $0 += $1 }
    }
    #expect(parts.sorted() == Array("0123456789".utf8).flatMap { Array(repeating: $0, count: 5) })
}

private func removedAttachmentIsRead(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.add("0123456789", as: id)
    let file = try #require(try await files.open(id))
    /// Returns nil if the read fails as that of a removed attachment.
    @Sendable func read() async throws -> Bool? {
        do { return try await file.read(at: 2, count: 20) == Array("23456789".utf8) } catch is StoreFault { return nil }
    }
    let results = try await withThrowingTaskGroup(of: Bool?.self) { group in
        for number in 0..<40 {
            group.addTask {
                if number == 20 { try await files.remove([id]) }
                return try await read()
            }
        }
        return try await group.reduce(into: [Bool?]()) { $0.append($1) }
    }
    #expect(!results.contains(false), "no read returns other bytes, or fewer")
    #expect(try await files.open(id) == nil)
}

private func formerAttachmentIsRead(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.add("former", as: id)
    let file = try #require(try await files.open(id))
    try await files.remove([id])
    try await files.add("latest", as: id)
    do {
        #expect(try await file.read(at: 0, count: 10) == Array("former".utf8))
    } catch is StoreFault {}
    #expect(try await files.content(of: id) == "latest")
}

// MARK: Lists

private func addMany(to files: any AttachmentFiles) async throws -> Set<AttachmentID> {
    let ids = (UInt64(0)..<60).map { AttachmentID.numbered($0) }
    for (place, id) in ids.enumerated() {
        if place % 3 == 0 { try await files.add("x", as: id) } else { try await files.create(id) }
    }
    return Set(ids)
}

private func pagesListEverything(_ maker: any AttachmentFilesMaker) async throws {
    let place = try await maker.makePlace()
    let files = try await place.open()
    #expect(try await files.listed().isEmpty)
    let ids = try await addMany(to: files)
    #expect(try await Set(files.listed()) == ids)
    // A process that starts now continues with the pages of the earlier one.
    let first = try await files.list(after: nil, before: Timestamp(milliseconds: .max))
    let next = try #require(first.next, "there are several pages")
    var found = Set(first.ids)
    var page = try await place.open().list(after: next, before: Timestamp(milliseconds: .max))
    found.formUnion(page.ids)
    while let next = page.next {
        page = try await files.list(after: next, before: Timestamp(milliseconds: .max))
        found.formUnion(page.ids)
    }
    #expect(found == ids)
}

private func sweepListsTheRest(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let ids = try await addMany(to: files)
    var (found, place) = (Set<AttachmentID>(), String?.none)
    repeat {
        let page = try await files.list(after: place, before: Timestamp(milliseconds: .max))
        try await files.remove(page.ids)
        found.formUnion(page.ids)
        place = page.next
    } while place != nil
    #expect(found == ids)
    #expect(try await files.listed().isEmpty)
}

private func newerIsNotListed(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    _ = try await addMany(to: files)
    #expect(try await files.listed(before: Timestamp(milliseconds: 0)).isEmpty)
}
