import CarillonClient
import CarillonServer
import Foundation
import Logging

/// The log of a command that uses the client library. A failed connection is reported as one line of text or one JSON object.
struct ClientLog: ForwardingLogHandler {
    let printer: Printer
    var base: any LogHandler

    init(_ label: String, _ printer: Printer) {
        self.printer = printer
        base = CommandLog.handler(label)
    }

    /// Returns a logger for warnings and errors.
    static func logger(_ label: String, _ printer: Printer) -> Logger {
        var logger = Logger(label: label, factory: { ClientLog($0, printer) })
        logger.logLevel = .warning
        return logger
    }

    func log(event: LogEvent) {
        guard let failure = FailedConnection(event.metadata ?? [:]) else { return base.log(event: event) }
        if printer.isJSON {
            printer.print(failure.values, otherwise: "")
        } else {
            // A progress line can be on the terminal.
            if isatty(STDERR_FILENO) == 1 { StandardError.clearLine() }
            StandardError.print("carillon: \(failure.sentence)")
        }
    }
}

/// The event that the client library logs if it cannot connect.
struct FailedConnection: Equatable {
    var address: String
    var reason: String
    var advice: String?
    var retryMilliseconds: Int64?

    /// Returns nil for the metadata of another event.
    init?(_ metadata: Logger.Metadata) {
        guard let address = metadata["address"], let reason = metadata["reason"] else { return nil }
        self.address = address.description
        self.reason = reason.description
        advice = metadata["advice"]?.description
        retryMilliseconds = metadata["retry-in-ms"].flatMap { Int64($0.description) }
    }

    var sentence: String {
        let wait = retryMilliseconds.map { " in " + Duration.milliseconds($0).text } ?? ""
        return "cannot connect to \(address): \(reason); retrying\(wait)" + (advice.map { ". " + $0 } ?? "")
    }

    var values: [String: OutputValue] {
        var values: [String: OutputValue] = [
            "event": "connectionFailed", "address": .text(address), "reason": .text(reason),
        ]
        values["advice"] = advice.map(OutputValue.text)
        values["retryMilliseconds"] = retryMilliseconds.map(OutputValue.number)
        return values
    }
}
