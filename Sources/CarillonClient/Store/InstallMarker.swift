#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A file beside the store that no backup takes along: where the store is without it, it came from a backup, and perhaps from
/// other hardware that goes on as the same device.
struct InstallMarker: Sendable {
    static let fileName = "carillon-client.install"

    private let url: URL

    init(directory: String) {
        url = URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent(Self.fileName)
    }

    func isThere(for device: String) -> Bool {
        (try? Data(contentsOf: url)) == Data(device.utf8)
    }

    func put(for device: String) throws {
        try Data(device.utf8).write(to: url, options: .atomic)
        #if canImport(Darwin)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            var file = url
            try file.setResourceValues(values)
        #endif
    }
}
