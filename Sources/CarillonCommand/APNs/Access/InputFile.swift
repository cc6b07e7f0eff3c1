import Foundation

/// Files that a command is told to read whole.
enum InputFile {
    /// "-" is standard input.
    static func bytes(_ path: String) throws -> Data {
        do {
            if path == "-" { return try FileHandle.standardInput.readToEnd() ?? Data() }
            return try Data(contentsOf: URL(filePath: path))
        } catch {
            throw CommandFault(ExitStatus.noInput, "the file \(path) cannot be read")
        }
    }

    static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }
}
