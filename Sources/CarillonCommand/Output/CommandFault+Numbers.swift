import ArgumentParser
import CarillonBasics

extension CommandFault {
    /// Returns nil for a JSON text without a number that is too large for `Double`.
    ///
    /// - Parameter name: The name of the text in the sentence: an option or a file.
    static func numberOutOfRange(
        in text: some Sequence<UInt8>, of name: String, _ code: ExitCode = .validationFailure, depth: Int = 32
    ) -> CommandFault? {
        NumberOutOfRange(in: Array(text), depth: depth).map { CommandFault(code, "\(name): \($0.clauseWithNumber)") }
    }
}
