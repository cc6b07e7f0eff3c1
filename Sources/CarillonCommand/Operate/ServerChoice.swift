import ArgumentParser
import CarillonCore

/// The server that a command is for.
enum ServerChoice {
    /// Returns the address of `--server`, or else of CARILLON_SERVER.
    static func url(_ option: String?) throws -> String {
        if let option { return try checked(option, "--server") }
        guard let variable = Environment["CARILLON_SERVER"] else {
            throw CommandFault(.validationFailure, "name the server with --server URL (or CARILLON_SERVER)")
        }
        return try checked(variable, "CARILLON_SERVER")
    }

    /// Returns the address of `--server`, or else of CARILLON_SERVER, or else the standard one. It can also be `unix:` and a path.
    static func urlOrSocket(_ option: String?, standard: String) throws -> String {
        let text = option ?? Environment["CARILLON_SERVER"] ?? standard
        if text.hasPrefix("unix:/") { return text }
        return try checked(text, option == nil ? "CARILLON_SERVER" : "--server")
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
