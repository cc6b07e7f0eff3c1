package import CarillonWire

/// Where the bytes of attachments are. Every call may wait for the disk.
///
/// Faults are ``StoreFault``s: `full` where the disk is.
package protocol AttachmentFiles: Sendable {
    /// Makes an empty file that grows.
    func create(_ id: AttachmentID) async throws
    /// Opens a file that grows, and cuts off what lies behind the offset. Nil when it is missing or shorter.
    func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)?
    /// Gives a file that has grown its name. One that has it is left.
    func publish(_ id: AttachmentID) async throws
    /// Nil when there is none under its name.
    func open(_ id: AttachmentID) async throws -> (any ReadableFile)?
    func remove(_ ids: [AttachmentID]) async throws
    /// The SHA-256 of a file that grows.
    func digest(ofGrowing id: AttachmentID) async throws -> [UInt8]
    /// How many bytes the disk has left.
    func freeBytes() async throws -> Int64
    /// The next files in the order of their places that are older than a moment; nil behind the last.
    func files(after place: Int, before moment: Timestamp) async throws -> (ids: [AttachmentID], place: Int)?
}

/// Bytes that a file takes without copying them first.
package protocol FileBytes: Sendable {
    var count: Int { get }
    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value
}

/// It closes when nobody has it any more.
package protocol GrowingFile: Sendable {
    func write(_ bytes: any FileBytes, at offset: Int64) async throws
    /// Returns when everything that was written is on disk.
    func sync() async throws
}

/// It closes when nobody has it any more.
package protocol ReadableFile: Sendable {
    /// Fewer only at the end of the file.
    func read(at offset: Int64, count: Int) async throws -> [UInt8]
}
