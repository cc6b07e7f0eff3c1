import ArgumentParser
import CarillonCore

/// The server that a command is for.
enum ServerChoice {
    /// Returns the address of `--server`, or else of CARILLON_SERVER.
    static func url(_ option: String?) throws -> String {
        if let option { return try checked(option, "--server") }
        guard let variable = Environment["CARILLON_SERVER"] else {
            throw CommandFault(.validationFailure, "say with --server URL (or CARILLON_SERVER) which server is meant")
        }
        return try checked(variable, "CARILLON_SERVER")
    }

    /// - Parameter name: The option or variable that has the address.
    static func checked(_ text: String, _ name: String) throws -> String {
        do {
            return try ServerURL(text).text
        } catch {
            throw ValidationError("\(name) \(error.reason).")
        }
    }
}
