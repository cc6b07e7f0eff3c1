import CarillonCore
import CarillonWire
import TestStores
import Testing

extension AttachmentFilesCase {
    static let interruptions: [AttachmentFilesCase] = [
        AttachmentFilesCase("an upload of a killed process cannot be read, goes on, and can be swept", uploadIsInterrupted),
        AttachmentFilesCase("a publication of a killed process can be repeated", publicationIsRepeated),
        AttachmentFilesCase("bytes without room fail as that, leave nothing, and fit later", fullPlaceKeepsNothing),
        AttachmentFilesCase("a full place serves and removes what it has", fullPlaceServes),
    ]
}

private func uploadIsInterrupted(_ maker: any AttachmentFilesMaker) async throws {
    let place = try await maker.makePlace()
    let former = try await place.open()
    let (id, begun) = (AttachmentID.numbered(1), AttachmentID.numbered(2))
    try await former.create(begun)
    try await former.create(id)
    try await former.append("abc", to: id)
    let file = try #require(try await former.openGrowing(id, at: 3))
    try await file.write(SomeBytes("def"), at: 3)

    let files = try await place.open()
    for id in [id, begun] { #expect(try await files.open(id) == nil) }
    #expect(try await Set(files.listed()) == [id, begun])
    try await files.append("xyz", to: id, at: 3)
    try await files.publish(id)
    #expect(try await files.content(of: id) == "abcxyz", "the bytes that were not durable are not in it")
    try await files.remove([id, begun])
    #expect(try await files.listed().isEmpty)
    for id in [id, begun] { #expect(try await files.openGrowing(id, at: 0) == nil) }
}

private func publicationIsRepeated(_ maker: any AttachmentFilesMaker) async throws {
    let place = try await maker.makePlace()
    let former = try await place.open()
    let id = AttachmentID.numbered(1)
    try await former.add("abc", as: id)
    let files = try await place.open()
    #expect(try await files.content(of: id) == "abc")
    _ = try #require(try await files.openGrowing(id, at: 3))
    let last = try await place.open()
    #expect(try await last.open(id) == nil)
    _ = try #require(try await last.openGrowing(id, at: 3))
    try await last.publish(id)
    #expect(try await last.content(of: id) == "abc")
    try await last.remove([id])
    #expect(try await last.listed().isEmpty)
}

/// Writes bytes that do not fit on a full disk.
private func writeTooMuch(to file: any GrowingFile, at offset: Int64) async throws {
    try await file.write(SomeBytes(Array(repeating: 7, count: AttachmentPlaceLimits.room)), at: offset)
    try await file.sync()
}

private func fullPlaceKeepsNothing(_ maker: any AttachmentFilesMaker) async throws {
    let place = try await maker.makePlace()
    let files = try await place.open()
    let id = AttachmentID.numbered(1)
    try await files.create(id)
    try await files.append("abc", to: id)
    try await place.fill()
    let file = try #require(try await files.openGrowing(id, at: 3))
    let fault = await #expect(throws: StoreFault.self) { try await writeTooMuch(to: file, at: 3) }
    #expect(fault?.kind == .full)
    #expect(try await files.open(id) == nil)
    #expect(try await files.openGrowing(id, at: 4) == nil, "nothing of the bytes is left")
    try await place.free()
    try await files.append("def", to: id, at: 3)
    try await files.publish(id)
    #expect(try await files.content(of: id) == "abcdef")
}

private func fullPlaceServes(_ maker: any AttachmentFilesMaker) async throws {
    let place = try await maker.makePlace()
    let files = try await place.open()
    let (whole, part) = (AttachmentID.numbered(1), AttachmentID.numbered(2))
    try await files.add("abc", as: whole)
    try await files.create(part)
    try await files.append("de", to: part)
    try await place.fill()
    let file = try #require(try await files.openGrowing(part, at: 2))
    await #expect(throws: StoreFault.self) { try await writeTooMuch(to: file, at: 2) }
    #expect(try await files.content(of: whole) == "abc")
    #expect(try await Set(files.listed()) == [whole, part])
    try await files.remove([part, whole])
    #expect(try await files.listed().isEmpty)
}
