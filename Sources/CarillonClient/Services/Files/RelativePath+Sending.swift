extension RelativePath {
    /// Returns the name of a file that is sent, before the name is checked.
    ///
    /// - Parameters:
    ///   - path: Where the file is. A relative path is its name; of an absolute path the last component is.
    ///   - name: The name that was given for it, if one was.
    static func nameText(of path: String, named name: String? = nil) -> String {
        if let name { return withoutDots(name) }
        return path.hasPrefix("/") ? path.split(separator: "/").last { $0 != "." }.map(String.init) ?? "" : withoutDots(path)
    }

    private static func withoutDots(_ text: String) -> String {
        text.split(separator: "/", omittingEmptySubsequences: false).filter { $0 != "." }.joined(separator: "/")
    }
}
