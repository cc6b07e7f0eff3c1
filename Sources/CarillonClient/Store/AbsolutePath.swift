#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Paths that stay valid when the working directory of the process changes.
package enum AbsolutePath {
    /// Returns the absolute path. A relative path starts at the working directory. Components `.` are removed.
    package static func of(_ path: String) -> String {
        guard !path.isEmpty else { return path }
        let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }
}
