import CarillonCore
import CarillonSQLite
import Foundation
import Synchronization
import TestSupport

/// Folders of attachments beside a store.
package struct AttachmentFolders: AttachmentFilesMaker {
    package init() {}

    package func makePlace() -> any AttachmentPlace { Place() }

    private final class Place: AttachmentPlace {
        private let directory = TemporaryDirectory()
        /// The number of bytes that fit; nil if nothing limits them.
        private let room = Mutex<Int?>(nil)

        func open() -> any AttachmentFiles {
            AttachmentFolder(in: directory.path) { [self] file, bytes, offset in write(bytes, to: file, at: offset) }
        }

        private func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int64) -> Int {
            let count = room.withLock { room in
                let count = min(bytes.count, room ?? bytes.count)
                room = room.map { $0 - count }
                return count
            }
            guard count > 0 else {
                errno = ENOSPC
                return -1
            }
            return pwrite(file, bytes.baseAddress, count, off_t(offset))
        }

        func fill() { room.withLock { $0 = AttachmentPlaceLimits.room - 1 } }

        func free() { room.withLock { $0 = nil } }
    }
}
