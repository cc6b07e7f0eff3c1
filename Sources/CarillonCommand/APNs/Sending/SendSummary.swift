import CarillonAPNs

/// The final report of a command: the number of pushes with each result, with advice.
struct SendSummary {
    enum End: String {
        case done, interrupted, refusedForAll, noService, unreadableFile
    }

    let tally: SendTally
    let duration: Duration
    let end: End
    /// The number of tokens that were skipped as repeated; nil if repetitions are not skipped.
    var repeated: Int?

    var lines: [String] {
        if tally.settled == 0, end == .done { return ["the input has no device token; nothing was sent"] }
        var lines = [Self.row("accepted", tally.accepted)]
        if tally.rejected > 0 {
            lines.append(Self.row("refused", tally.rejected))
            for (label, refusals) in tally.refusals.sorted(by: Self.mostFirst) {
                lines.append(Self.detail(refusals.count, label, refusals.example.advice))
            }
        }
        if tally.failed > 0 {
            lines.append(Self.row("failed", tally.failed))
            let failures = tally.failures.map { (key: $0.key.description, value: $0.value) }
            for (label, failures) in failures.sorted(by: Self.mostFirst) {
                lines.append(Self.detail(failures.count, label, Self.sentence(label, failures)))
            }
        }
        if let repeated, repeated > 0 { lines.append(Self.row("repeated", repeated) + ", each with one push") }
        lines.append("in \(time)\(tally.settled < 100 ? "" : ", \(rate.grouped) a second")\(ending)")
        return lines
    }

    var values: [String: OutputValue] {
        var values: [String: OutputValue] = [
            "event": "summary", "end": .text(end.rawValue), "accepted": .number(Int64(tally.accepted)),
            "rejected": .number(Int64(tally.rejected)), "failed": .number(Int64(tally.failed)),
            "reasons": .object(tally.refusals.mapValues { .number(Int64($0.count)) }),
            "errors": .object(
                Dictionary(uniqueKeysWithValues: tally.failures.map { ($0.key.description, .number(Int64($0.value.count))) })
            ),
            "milliseconds": .number(milliseconds),
        ]
        values["repeated"] = repeated.map { .number(Int64($0)) }
        return values
    }

    private var ending: String {
        switch end {
        case .done: ""
        case .interrupted: "; interrupted, the rest was not sent"
        case .refusedForAll: "; the service would refuse every push with this reason, so nothing more was sent"
        case .noService: "; the service does not answer, so nothing more was sent"
        case .unreadableFile: "; the file could not be read to its end"
        }
    }

    private var milliseconds: Int64 {
        duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    }

    private var time: String {
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        return milliseconds < 10_000
            ? "\(milliseconds / 1000).\(milliseconds / 100 % 10) s" : "\((milliseconds / 1000).grouped) s"
    }

    private var rate: Int64 { Int64(tally.settled) * 1000 / max(1, milliseconds) }

    private static func sentence(_ label: String, _ failures: SendTally.Failures) -> String {
        // The library's sentence concerns a single token.
        var text =
            label == APNsError.Code.tokenInvalid.description
            ? "not a device token; a token must be an even number of hexadecimal digits" : failures.sentence
        if !failures.lines.isEmpty {
            let isAll = failures.lines.count == failures.count
            let numbers = failures.lines.map(String.init).joined(separator: ", ")
            text += " (line\(failures.count == 1 ? "" : "s") \(numbers)\(isAll ? "" : " and others"))"
        }
        if failures.unknownOutcomes > 0 { text += "; \(failures.unknownOutcomes.grouped) may have arrived" }
        return text
    }

    private static func mostFirst<Value>(_ one: (key: String, value: Value), _ other: (key: String, value: Value)) -> Bool
    where Value: Counted { one.value.count == other.value.count ? one.key < other.key : one.value.count > other.value.count }

    private static func row(_ name: String, _ count: Int) -> String {
        name.padding(to: 10) + count.grouped.padding(to: 9, atStart: true)
    }

    private static func detail(_ count: Int, _ label: String, _ advice: String) -> String {
        count.grouped.padding(to: 19, atStart: true) + "  \(label): \(advice)"
    }
}

protocol Counted {
    var count: Int { get }
}

extension SendTally.Refusals: Counted {}
extension SendTally.Failures: Counted {}
