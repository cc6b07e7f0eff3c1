import ArgumentParser

/// The result of one check of the credentials or the network.
struct CheckFinding: Equatable {
    enum Verdict: String {
        case ok, warning, wrong
    }

    /// The subject of the check.
    enum Subject: String {
        case key, certificate, connection, credentials
    }

    let subject: Subject
    let verdict: Verdict
    let sentence: String
    /// The address, for a connection.
    var address: ServiceAddress?
    /// The remaining days of a valid certificate.
    var daysLeft: Int?
    /// The exit code of the command if this check fails.
    var exitStatus: ExitCode = .failure

    func print(_ printer: Printer) {
        var values: [String: OutputValue] = [
            "event": "finding", "what": .text(subject.rawValue), "verdict": .text(verdict.rawValue),
            "message": .text(sentence),
        ]
        values["address"] = address.map { .text($0.description) }
        values["daysLeft"] = daysLeft.map { .number(Int64($0)) }
        let name = verdict.rawValue.padding(to: 9) + subject.rawValue.padding(to: 13)
        printer.print(values, otherwise: name + sentence)
    }
}
