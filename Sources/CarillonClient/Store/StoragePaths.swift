#if canImport(Darwin)
    import CarillonBasics
#endif
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Converts paths to texts that stay valid when the storage directory is moved. iOS moves the container of an app with each
/// update.
///
/// | Path | Text |
/// |---|---|
/// | below the storage directory | `in:` and the path from there |
/// | elsewhere | `at:` and the path |
/// | elsewhere, on Apple's platforms | `file:`, a bookmark in base64url, `:` and the path; without a file, `folder:` with that of its directory |
struct StoragePaths: Equatable, Sendable {
    let directory: String

    init(directory: String) {
        var end = directory.utf8[...]
        while end.count > 1, end.last == UInt8(ascii: "/") { end.removeLast() }
        self.directory = String(Substring(end))
    }

    /// Returns the text that is stored for a path.
    func kept(_ path: String) -> String {
        if let rest = rest(of: path) { return "in:" + rest }
        #if canImport(Darwin)
            if let marked = Self.marked(path) { return marked }
        #endif
        return "at:" + path
    }

    /// Returns the path for a stored text. Before version 12 of the storage the text is the path itself.
    func path(_ kept: String) -> String {
        guard let (form, text) = Self.parts(of: kept) else { return kept }
        switch form {
        case .inside: return directory + "/" + text
        case .outside: return text
        case .markedFile, .markedFolder: return Self.path(marked: text, isFile: form == .markedFile)
        }
    }

    func isKept(_ text: String) -> Bool { Self.parts(of: text) != nil }

    /// Returns the text for a path that was stored in its original form. The files of messages are found by their position below
    /// a storage directory, which may have had another path then.
    func converted(_ former: String) -> String {
        if let rest = rest(of: former) ?? Self.restOfMessage(former) { return "in:" + rest }
        return kept(former)
    }

    // MARK: Inside

    private func rest(of path: String) -> String? {
        if let rest = Self.rest(of: path, in: directory), !rest.split(separator: "/").contains("..") { return rest }
        return Self.rest(of: Self.standard(path), in: Self.standard(directory))
    }

    /// Compares bytes, because an accent at the beginning of a name forms one character with the slash before it.
    private static func rest(of path: String, in directory: String) -> String? {
        let start = directory.utf8.last == UInt8(ascii: "/") ? directory : directory + "/"
        guard path.utf8.starts(with: start.utf8), path.utf8.count > start.utf8.count else { return nil }
        return String(Substring(path.utf8.dropFirst(start.utf8.count)))
    }

    private static func standard(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }

    /// `Inbox/.gathering/…`, `Inbox/.payloads/…` or `Inbox/<app>/<time>`: see ``MessageFiles``.
    private static func restOfMessage(_ path: String) -> String? {
        let parts = path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        let place = parts.indices.last { index in
            guard parts[index] == "Inbox", index + 2 < parts.count else { return false }
            return [".gathering", ".payloads"].contains(parts[index + 1])
        }
        if let place { return parts[place...].joined(separator: "/") }
        let last = parts.suffix(3)
        guard last.count == 3, last.first == "Inbox", last.last.flatMap({ Int64($0) }) != nil else { return nil }
        return last.joined(separator: "/")
    }

    // MARK: Texts

    private enum Form: String, CaseIterable {
        case inside = "in:"
        case outside = "at:"
        case markedFile = "file:"
        case markedFolder = "folder:"
    }

    private static func parts(of kept: String) -> (form: Form, text: String)? {
        for form in Form.allCases where kept.utf8.starts(with: form.rawValue.utf8) {
            return (form, String(Substring(kept.utf8.dropFirst(form.rawValue.utf8.count))))
        }
        return nil
    }

    /// Returns the path of a bookmark, or the path beside the bookmark if the bookmark cannot be used.
    private static func path(marked text: String, isFile: Bool) -> String {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return text }
        let path = String(parts[1])
        #if canImport(Darwin)
            var isStale = false
            guard let mark = Base64URL.decode(parts[0]),
                let url = try? URL(resolvingBookmarkData: Data(mark), bookmarkDataIsStale: &isStale)
            else { return path }
            return isFile ? url.path : url.appendingPathComponent(URL(fileURLWithPath: path).lastPathComponent).path
        #else
            return path
        #endif
    }

    #if canImport(Darwin)
        /// Returns nil if the system makes no bookmark. The path is stored in its original form then.
        private static func marked(_ path: String) -> String? {
            let url = URL(fileURLWithPath: path)
            if let mark = try? url.bookmarkData() {
                return "\(Form.markedFile.rawValue)\(Base64URL.encode(Array(mark))):\(path)"
            }
            guard let mark = try? url.deletingLastPathComponent().bookmarkData() else { return nil }
            return "\(Form.markedFolder.rawValue)\(Base64URL.encode(Array(mark))):\(path)"
        }
    #endif
}
