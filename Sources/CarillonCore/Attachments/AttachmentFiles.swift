package import CarillonWire

/// The bytes of attachments: in a folder, or in a bucket of an object store.
///
/// An upload takes bytes, and becomes an attachment when it is published. One request at a time works on an upload, while any number of
/// requests read, list and remove.
///
/// Faults are ``StoreFault``s: `full` if there is no room, and `unavailable` otherwise. Of bytes for which there is no room, nothing is left.
package protocol AttachmentFiles: Sendable {
    /// Begins an upload without bytes, durably. Fails if there is an upload with this id.
    func create(_ id: AttachmentID) async throws
    /// Opens an upload, and removes its bytes from the offset on. An attachment becomes an upload again, which cannot be read until it is
    /// published.
    ///
    /// - Parameter offset: 0, or a number of bytes that a ``GrowingFile/sync()`` made durable.
    /// - Returns: Nil if there is no upload with this id, or if it has fewer bytes.
    func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)?
    /// Makes an attachment of the durable bytes of an upload, at once and durably. An attachment stays as it is. Fails if there is neither.
    func publish(_ id: AttachmentID) async throws
    /// Opens an attachment. Returns nil if no attachment has the id, also while an upload has the id.
    func open(_ id: AttachmentID) async throws -> (any ReadableFile)?
    /// Removes uploads and attachments. An id of neither is ignored.
    func remove(_ ids: [AttachmentID]) async throws
    /// Returns the SHA-256 of the durable bytes of an upload.
    func digest(ofGrowing id: AttachmentID) async throws -> [UInt8]
    /// Returns the number of bytes for which there is room; `Int64.max` if nothing limits it.
    func freeBytes() async throws -> Int64
    /// Returns a page of the uploads and attachments whose last change was before a moment, in any order. The pages have each of them, apart
    /// from those that are changed or removed meanwhile. An id can be listed twice.
    ///
    /// - Parameter place: ``AttachmentPage/next`` of the page before; nil for the first page.
    func list(after place: String?, before moment: Timestamp) async throws -> AttachmentPage
}

package struct AttachmentPage: Sendable {
    /// Can be empty, also before the last page.
    package var ids: [AttachmentID]
    /// Where the next page begins, in a form that only these ``AttachmentFiles`` read; nil behind the last page.
    package var next: String?

    package init(_ ids: [AttachmentID], next: String? = nil) {
        self.ids = ids
        self.next = next
    }
}

/// Bytes that a file takes without copying them first.
package protocol FileBytes: Sendable {
    var count: Int { get }
    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value
}

/// An open upload. It closes when nobody has it any more. The bytes after the last ``sync()`` are lost with it.
package protocol GrowingFile: Sendable {
    /// Adds bytes at the end.
    ///
    /// - Parameter offset: The number of bytes that the upload has.
    func write(_ bytes: any FileBytes, at offset: Int64) async throws
    /// Makes all bytes durable. After a failure the file is of no further use.
    func sync() async throws
}

/// An open attachment. It closes when nobody has it any more.
package protocol ReadableFile: Sendable {
    /// Returns a range of the bytes, which are fewer only at the end of the attachment. If the attachment was removed since it was opened,
    /// the call can fail.
    func read(at offset: Int64, count: Int) async throws -> [UInt8]
}
