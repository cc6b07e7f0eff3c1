import Foundation

/// Shows a request instead of sending it.
struct DryRun {
    let url: String
    let headers: [(name: String, value: String)]
    let payload: String

    func show(_ printer: Printer) {
        printer.print(
            [
                "event": "dryRun", "url": .text(url),
                "headers": .object(Dictionary(uniqueKeysWithValues: headers.map { ($0.name, .text($0.value)) })),
                "payload": .text(payload), "bytes": .number(Int64(payload.utf8.count)),
            ],
            lines: ["POST \(url)"] + headers.map { "\($0.name): \($0.value)" } + ["", payload])
    }
}
