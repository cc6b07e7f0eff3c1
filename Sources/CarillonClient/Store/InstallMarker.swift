#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A file beside the store that is excluded from backups. If the store has no such file, it was restored from a backup, perhaps
/// of other hardware that is still in use as the same device.
struct InstallMarker: Sendable {
    static let fileName = "carillon-client.install"

    private let url: URL

    init(directory: String) {
        url = URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent(Self.fileName)
    }

    func exists(for device: String) -> Bool {
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
