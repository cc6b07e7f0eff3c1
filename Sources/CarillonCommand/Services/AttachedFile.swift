import CarillonClient
import Foundation

/// The value of `--attach`: a path, or a name and a path.
enum AttachedFile {
    /// Reads `PATH` or `NAME=PATH`. The text of a path that exists is a path, whatever characters it has.
    ///
    /// The file travels under its last component unless a name is given.
    static func parsed(
        _ text: String, isFile: (String) -> Bool = { FileManager.default.fileExists(atPath: $0) }
    ) -> NamedFile {
        guard !isFile(text), let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            return NamedFile(path: AbsolutePath.of(text))
        }
        return NamedFile(path: AbsolutePath.of(String(text[text.index(after: sign)...])), name: String(text[..<sign]))
    }
}
