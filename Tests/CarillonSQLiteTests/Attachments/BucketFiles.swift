import CarillonCore
import CarillonWire
import Crypto
import Synchronization
import TestStores

/// Attachments in a bucket: an upload is a mark and an object for each time that it was made durable, an attachment is one object.
struct BucketFiles: AttachmentFiles {
    let bucket: Bucket

    private static func mark(_ id: AttachmentID) -> String { "\(id)/upload" }
    private static func whole(_ id: AttachmentID) -> String { "\(id)/whole" }
    private static func part(_ id: AttachmentID, at offset: Int64) -> String { "\(id)/part/\(offset)" }

    /// The parts of an upload in their order, each with its offset.
    private func parts(of id: AttachmentID) -> [(offset: Int64, bytes: [UInt8])] {
        let prefix = "\(id)/part/"
        return bucket.keys(prefix: prefix).compactMap { key in
            guard let offset = Int64(key.dropFirst(prefix.count)), let object = bucket.object(key) else { return nil }
            return (offset, object.bytes)
        }.sorted { $0.offset < $1.offset }
    }

    func create(_ id: AttachmentID) async throws { try bucket.put([], as: Self.mark(id), ifAbsent: true) }

    func openGrowing(_ id: AttachmentID, at offset: Int64) async throws -> (any GrowingFile)? {
        if let object = bucket.object(Self.whole(id)) {
            if bucket.object(Self.mark(id)) == nil {
                try bucket.put(object.bytes, as: Self.part(id, at: 0))
                try bucket.put([], as: Self.mark(id))
            }
            bucket.remove(Self.whole(id))
        }
        guard bucket.object(Self.mark(id)) != nil else { return nil }
        let parts = parts(of: id)
        guard (parts.last.map { $0.offset + Int64($0.bytes.count) } ?? 0) >= offset else { return nil }
        for part in parts where part.offset + Int64(part.bytes.count) > offset {
            let kept = part.bytes.prefix(Int(max(0, offset - part.offset)))
            let key = Self.part(id, at: part.offset)
            if kept.isEmpty { bucket.remove(key) } else { try bucket.put(Array(kept), as: key) }
        }
        return Writer(bucket: bucket, id: id)
    }

    func publish(_ id: AttachmentID) async throws {
        guard bucket.object(Self.mark(id)) != nil else {
            guard bucket.object(Self.whole(id)) != nil else { throw StoreFault(.unavailable, "there is no upload") }
            return
        }
        try bucket.put(parts(of: id).flatMap(\.bytes), as: Self.whole(id))
        bucket.remove(Self.mark(id))
        for key in bucket.keys(prefix: "\(id)/part/") { bucket.remove(key) }
    }

    func open(_ id: AttachmentID) async throws -> (any ReadableFile)? {
        bucket.object(Self.whole(id)).map { Reader(bucket: bucket, key: Self.whole(id), tag: $0.tag) }
    }

    func remove(_ ids: [AttachmentID]) async throws {
        for id in ids { for key in bucket.keys(prefix: "\(id)/") { bucket.remove(key) } }
    }

    func digest(ofGrowing id: AttachmentID) async throws -> [UInt8] {
        guard bucket.object(Self.mark(id)) != nil else { throw StoreFault(.unavailable, "there is no upload") }
        return Array(SHA256.hash(data: parts(of: id).flatMap(\.bytes)))
    }

    func freeBytes() async throws -> Int64 { .max }

    func list(after place: String?, before moment: Timestamp) async throws -> AttachmentPage {
        let (keys, next) = bucket.keys(prefix: "", after: place)
        let old = keys.filter { bucket.object($0).map { $0.changedAt < moment } ?? false }
        return AttachmentPage(old.compactMap { AttachmentID($0.prefix { $0 != "/" }) }, next: next)
    }

    private final class Writer: GrowingFile {
        private let bucket: Bucket
        private let id: AttachmentID
        private let pending = Mutex<(offset: Int64, bytes: [UInt8])?>(nil)

        init(bucket: Bucket, id: AttachmentID) {
            self.bucket = bucket
            self.id = id
        }

        func write(_ bytes: any FileBytes, at offset: Int64) async throws {
            let more = bytes.withBytes { Array($0) }
            pending.withLock { pending in pending = (pending?.offset ?? offset, (pending?.bytes ?? []) + more) }
        }

        func sync() async throws {
            guard let (offset, bytes) = pending.withLock({ $0 }), !bytes.isEmpty else { return }
            try bucket.put(bytes, as: BucketFiles.part(id, at: offset), ifAbsent: true)
            pending.withLock { $0 = nil }
        }
    }

    private struct Reader: ReadableFile {
        let bucket: Bucket
        let key: String
        let tag: Int

        func read(at offset: Int64, count: Int) async throws -> [UInt8] {
            guard let object = bucket.object(key), object.tag == tag else {
                throw StoreFault(.unavailable, "the attachment was removed")
            }
            return Array(object.bytes.dropFirst(Int(offset)).prefix(count))
        }
    }
}

struct Buckets: AttachmentFilesMaker {
    func makePlace() -> any AttachmentPlace { Place() }

    private struct Place: AttachmentPlace {
        private let bucket = Bucket()

        func open() -> any AttachmentFiles { BucketFiles(bucket: bucket) }
        func fill() { bucket.setRoom(AttachmentPlaceLimits.room - 1) }
        func free() { bucket.setRoom(nil) }
    }
}
