extension RelativePath {
    /// Returns the name of a file that is sent, before the name is checked.
    ///
    /// - Parameters:
    ///   - path: Where the file is. A relative path is its name; of an absolute path the last component is.
    ///   - name: The name that was given for it, if one was.
    static func nameText(of path: String, named name: String? = nil) -> String {
        if let name { return withoutDots(name) }
        let scalars = path.unicodeScalars
        guard scalars.first == "/" else { return withoutDots(path) }
        return scalars.split(separator: "/").map { String($0) }.last { $0 != "." } ?? ""
    }

    private static func withoutDots(_ text: String) -> String {
        let parts = text.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        return parts.filter { $0 != "." }.joined(separator: "/")
    }
}
