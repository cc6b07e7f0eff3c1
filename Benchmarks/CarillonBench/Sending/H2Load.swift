import Foundation

/// Runs h2load, from Debian's nghttp2-client, with the requests of a provider. It shows the
/// time of a C program that encodes no payload and delivers no responses to a caller.
struct H2Load: Sendable {
    private let executable: String
    private let scratch: ScratchDirectory

    init(scratch: ScratchDirectory) throws(NotMeasured) {
        let places = ["/usr/bin/h2load", "/usr/local/bin/h2load"]
        guard let executable = places.first(where: FileManager.default.isExecutableFile) else {
            throw NotMeasured("not installed (nghttp2-client)")
        }
        self.executable = executable
        self.scratch = scratch
    }

    func push(_ load: SendingLoad, to simulator: SimulatedAPNs) async throws -> SendingResult {
        let body = scratch.file("h2load-body")
        try Data(Self.payload(load.payloadBytes).utf8).write(to: URL(filePath: body))
        let uris = scratch.file("h2load-uris")
        try Data(Self.uris(port: simulator.port).utf8).write(to: URL(filePath: uris))
        let token = try await simulator.providerToken()
        let ended = try await ServerProcess.run(
            executable,
            [
                "-c", "\(load.connections)", "-m", "\(load.inFlight / load.connections)", "-t", "1", "-n", "\(load.warm)",
                "-d", body, "-i", uris, "-H", "authorization: bearer \(token)", "-H", "apns-topic: com.example.bench",
                "-H", "apns-push-type: alert", "-H", "apns-priority: 10",
            ], log: scratch.file("h2load.log"))
        return try Self.result(of: ended, load)
    }

    /// Makes a thousand device tokens, as for the other sender.
    private static func uris(port: Int) -> String {
        (0..<1000).map { number in
            let digits = String(number, radix: 16)
            let token = String(repeating: "0f1e2d3c4b5a6978", count: 4).dropLast(digits.count) + digits
            return "https://localhost:\(port)/3/device/\(token)\n"
        }.joined()
    }

    private static func payload(_ bytes: Int) -> String {
        let bare = #"{"aps":{"alert":{"title":"Order 1000000 is ready","body":""},"sound":"default"}}"#
        return bare.replacing(#""body":""#, with: #""body":""# + String(repeating: ".", count: bytes - bare.utf8.count))
    }

    // MARK: The output

    private static func result(of ended: ServerProcess.Ended, _ load: SendingLoad) throws -> SendingResult {
        let printed = ended.printed
        guard let accepted = number(before: " 2xx", in: printed), let rate = number(before: " req/s", in: printed),
            let first = milliseconds(after: "time to 1st byte:", in: printed)
        else { throw NotMeasured("h2load printed something else: \(printed.suffix(300))") }
        guard Int(accepted) == load.warm else {
            throw NotMeasured("\(Int(accepted)) requests of \(load.warm) were answered with 200")
        }
        return SendingResult(
            perSecond: rate, cpuMicroseconds: ended.cpuMicroseconds / Double(load.warm), firstMilliseconds: first,
            pushes: load.warm)
    }

    private static func number(before unit: String, in text: String) -> Double? {
        guard let end = text.firstRange(of: unit)?.lowerBound else { return nil }
        let digits = text[..<end].reversed().prefix { $0.isNumber || $0 == "." }
        return Double(String(digits.reversed()))
    }

    /// Returns the first of the times on a line. h2load chooses the unit.
    private static func milliseconds(after name: String, in text: String) -> Double? {
        guard let start = text.firstRange(of: name)?.upperBound,
            let word = text[start...].split(whereSeparator: \.isWhitespace).first
        else { return nil }
        let digits = word.prefix { $0.isNumber || $0 == "." }
        let factors = ["us": 0.001, "ms": 1, "s": 1000]
        guard let value = Double(digits), let factor = factors[String(word.dropFirst(digits.count))] else { return nil }
        return value * factor
    }
}
