import Foundation

/// Measures how long the disk takes to make a small write durable. This limits the speed of every durable server.
enum DiskProbe {
    static func describe(_ scratch: ScratchDirectory) -> String {
        let path = scratch.file("probe")
        defer { scratch.remove("probe") }
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        guard descriptor >= 0 else { return "unknown" }
        defer { close(descriptor) }
        let block = [UInt8](repeating: 7, count: 4096)
        var times: [UInt64] = []
        for _ in 0..<200 {
            let start = nanoseconds()
            guard write(descriptor, block, block.count) == block.count, fsync(descriptor) == 0 else { return "unknown" }
            times.append(nanoseconds() - start)
        }
        times.sort()
        return "4 KiB appended and synced in \(Figure.text(Double(times[times.count / 2]) / 1e6)) ms (median)"
    }
}
