import CarillonCore
import CarillonWire
import TestStores
import Testing

extension AttachmentFilesCase {
    static let uploads: [AttachmentFilesCase] = [
        AttachmentFilesCase("an upload can be read from its publication on, as a whole", uploadIsPublished),
        AttachmentFilesCase("an upload is begun once, and published any number of times", uploadIsBegunOnce),
        AttachmentFilesCase("an upload goes on at a durable number of bytes, and loses the bytes behind it", uploadGoesOn),
        AttachmentFilesCase("an attachment that is opened as an upload cannot be read until it is published", uploadAgain),
        AttachmentFilesCase("an attachment can have no bytes", emptyAttachment),
        AttachmentFilesCase("a digest is that of all durable bytes", digestIsOfAll),
        AttachmentFilesCase("many uploads at once do not mix", uploadsAtOnce),
        AttachmentFilesCase("removal takes uploads and attachments, and ignores what is not there", removalTakesBoth),
    ]
}

private func uploadIsPublished(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.create(id)
    let file = try #require(try await files.openGrowing(id, at: 0))
    try await file.write(SomeBytes("abc"), at: 0)
    try await file.write(SomeBytes("de"), at: 3)
    #expect(try await files.open(id) == nil)
    try await file.sync()
    try await file.write(SomeBytes("f"), at: 5)
    try await file.sync()
    #expect(try await files.open(id) == nil)
    try await files.publish(id)
    #expect(try await files.content(of: id) == "abcdef")
    #expect(try await files.freeBytes() > 0)
}

private func uploadIsBegunOnce(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let (id, other) = (AttachmentID.numbered(1), AttachmentID.numbered(2))
    try await files.create(id)
    try await files.append("abc", to: id)
    await #expect(throws: StoreFault.self) { try await files.create(id) }
    await #expect(throws: StoreFault.self) { try await files.publish(other) }
    for _ in 0..<3 { try await files.publish(id) }
    #expect(try await files.content(of: id) == "abc", "the second beginning changed nothing")
    #expect(try await files.open(other) == nil)
}

private func uploadGoesOn(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    #expect(try await files.openGrowing(id, at: 0) == nil)
    try await files.create(id)
    try await files.append("abc", to: id)
    try await files.append("def", to: id, at: 3)
    #expect(try await files.openGrowing(id, at: 7) == nil, "it has fewer bytes")
    try await files.append("xy", to: id, at: 3)
    #expect(try await files.openGrowing(id, at: 6) == nil, "the bytes are replaced by fewer")
    try await files.append("z", to: id, at: 5)
    try await files.publish(id)
    #expect(try await files.content(of: id) == "abcxyz")

    let again = AttachmentID.numbered(2)
    try await files.create(again)
    try await files.append("abc", to: again)
    try await files.append("x", to: again)
    try await files.publish(again)
    #expect(try await files.content(of: again) == "x", "it began anew")
}

private func uploadAgain(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.add("abc", as: id)
    let file = try #require(try await files.openGrowing(id, at: 3))
    #expect(try await files.open(id) == nil)
    try await file.write(SomeBytes("d"), at: 3)
    try await file.sync()
    try await files.publish(id)
    #expect(try await files.content(of: id) == "abcd")
}

private func emptyAttachment(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let id = AttachmentID.numbered(1)
    try await files.create(id)
    try await files.append("", to: id)
    try await files.publish(id)
    #expect(try await files.content(of: id)?.isEmpty == true)
}

private func digestIsOfAll(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let (short, long) = (AttachmentID.numbered(1), AttachmentID.numbered(2))
    try await files.create(short)
    #expect(
        try await files.digest(of: short) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    for (offset, text) in ["a", "b", "c"].enumerated() { try await files.append(text, to: short, at: Int64(offset)) }
    #expect(
        try await files.digest(of: short) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    try await files.create(long)
    let file = try #require(try await files.openGrowing(long, at: 0))
    try await file.write(SomeBytes(Array(repeating: 0, count: (1 << 20) + 1)), at: 0)
    try await file.sync()
    #expect(
        try await files.digest(of: long) == "2cb74edba754a81d121c9db6833704a8e7d417e5b13d1a19f4a52f007d644264")
}

private func uploadsAtOnce(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    try await withThrowingTaskGroup(of: Void.self) { group in
        for number in UInt64(0)..<20 {
            group.addTask { try await files.add("content \(number)", as: AttachmentID.numbered(number)) }
        }
        try await group.waitForAll()
    }
    for number in UInt64(0)..<20 {
        #expect(try await files.content(of: AttachmentID.numbered(number)) == "content \(number)")
    }
}

private func removalTakesBoth(_ maker: any AttachmentFilesMaker) async throws {
    let files = try await maker.makePlace().open()
    let ids = (UInt64(1)...4).map { AttachmentID.numbered($0) }
    try await files.remove([])
    try await files.remove(ids)
    try await files.add("one", as: ids[0])
    try await files.create(ids[1])
    try await files.append("two", to: ids[1])
    try await files.add("stays", as: ids[2])
    for _ in 0..<2 { try await files.remove([ids[0], ids[3], ids[1]]) }
    #expect(try await files.open(ids[0]) == nil)
    for id in ids[0...1] { #expect(try await files.openGrowing(id, at: 0) == nil) }
    #expect(try await Set(files.listed()) == [ids[2]])
    #expect(try await files.content(of: ids[2]) == "stays")
    try await files.add("again", as: ids[0])
    #expect(try await files.content(of: ids[0]) == "again")
}
