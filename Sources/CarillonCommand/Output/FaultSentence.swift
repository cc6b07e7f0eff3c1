import CarillonClient
import Foundation

/// Returns sentences for unexpected errors. They do not contain texts of libraries.
enum FaultSentence {
    static func of(_ error: any Error) -> String {
        if let reason = RequestFailure.reason(error) { return reason.summary }
        switch error {
        case is DecodingError:
            return "an answer does not have the documented form; check whether the address is of a Carillon server"
        case is EncodingError: return "a value cannot be written as JSON"
        case is CocoaError, is POSIXError: return error.localizedDescription
        case let error as any LocalizedError: return error.errorDescription ?? unexpected(error)
        // The errors of Carillon have descriptions of their own.
        default:
            let isDescribed = error as Any is any CustomStringConvertible
            let isOurs = String(reflecting: type(of: error)).hasPrefix("Carillon")
            return isDescribed && isOurs ? "\(error)" : unexpected(error)
        }
    }

    private static func unexpected(_ error: any Error) -> String { "an unexpected error (\(type(of: error)))" }
}
