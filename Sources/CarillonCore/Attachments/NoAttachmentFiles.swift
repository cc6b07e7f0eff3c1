package import CarillonWire

/// Where nothing can be left: beside a store that is in memory, or that is opened for something else.
package struct NoAttachmentFiles: AttachmentFiles {
    package init() {}

    private static let fault = StoreFault(.unavailable, "attachments are kept beside a store in files")

    package func create(_ id: AttachmentID) async throws { throw Self.fault }
    package func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)? { nil }
    package func publish(_ id: AttachmentID) async throws { throw Self.fault }
    package func open(_ id: AttachmentID) async throws -> (any ReadableFile)? { nil }
    package func remove(_ ids: [AttachmentID]) async throws {}
    package func digest(ofGrowing id: AttachmentID) async throws -> [UInt8] { throw Self.fault }
    package func freeBytes() async throws -> Int64 { throw Self.fault }
    package func list(after place: String?, before moment: Timestamp) async throws -> AttachmentPage { AttachmentPage([]) }
}
