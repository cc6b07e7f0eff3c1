import ArgumentParser
import CarillonCore

/// Selects the server of a command.
enum ServerChoice {
    /// Returns the address in `--server`, or else in CARILLON_SERVER.
    static func url(_ option: String?) throws -> String {
        if let option { return try checked(option, "--server") }
        guard let variable = Environment["CARILLON_SERVER"] else {
            throw CommandFault(.validationFailure, "name the server with --server URL (or CARILLON_SERVER)")
        }
        return try checked(variable, "CARILLON_SERVER")
    }

    /// Returns the address in `--server`, or else in CARILLON_SERVER, or else the default. It can also be `unix:` and a path.
    static func urlOrSocket(_ option: String?, standard: String) throws -> String {
        let text = option ?? Environment["CARILLON_SERVER"] ?? standard
        if text.hasPrefix("unix:/") { return text }
        return try checked(text, option == nil ? "CARILLON_SERVER" : "--server")
    }

    /// - Parameter name: The option or variable that contains the address.
    static func checked(_ text: String, _ name: String) throws -> String {
        do {
            return try ServerURL(text).text
        } catch {
            throw ValidationError("\(name) \(error.reason).")
        }
    }
}
