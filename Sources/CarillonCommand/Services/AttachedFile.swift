import CarillonClient
import Foundation

/// The value of `--attach`: a path, or a name and a path.
enum AttachedFile {
    /// Reads `PATH` or `NAME=PATH`. A text that is an existing path counts as a path, even if it contains "=".
    ///
    /// Without a name, the file is sent under its last path component.
    static func parsed(
        _ text: String, isFile: (String) -> Bool = { FileManager.default.fileExists(atPath: $0) }
    ) -> NamedFile {
        guard !isFile(text), let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            return NamedFile(path: AbsolutePath.of(text))
        }
        return NamedFile(path: AbsolutePath.of(String(text[text.index(after: sign)...])), name: String(text[..<sign]))
    }
}
