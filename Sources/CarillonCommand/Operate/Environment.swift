import Foundation

/// The environment of the process.
enum Environment {
    static var all: [String: String] { withoutLineEnds(ProcessInfo.processInfo.environment) }

    static subscript(name: String) -> String? { all[name] }

    /// Removes CR and LF at the end of values, which can remain from variable files with the line breaks of another system.
    static func withoutLineEnds(_ variables: [String: String]) -> [String: String] {
        variables.mapValues { value in
            var scalars = value.unicodeScalars
            while scalars.last == "\r" || scalars.last == "\n" { scalars.removeLast() }
            return String(scalars)
        }
    }
}
