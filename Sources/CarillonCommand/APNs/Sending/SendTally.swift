import ArgumentParser
import CarillonAPNs

/// Counts what became of the pushes of one command.
struct SendTally {
    /// Refusals of one reason.
    struct Refusals {
        var count = 0
        /// One of them, for the advice.
        let example: APNsRejection
    }

    /// Pushes without an answer for one cause.
    struct Failures {
        var count = 0
        /// How many of them the service can have taken all the same.
        var unknownFates = 0
        /// The first lines of the file that they stood on.
        var lines: [Int] = []
        /// The first of them, in words.
        let sentence: String
    }

    private(set) var accepted = 0
    private(set) var rejected = 0
    private(set) var failed = 0
    private(set) var refusals: [String: Refusals] = [:]
    private(set) var failures: [APNsError.Code: Failures] = [:]
    /// How many have no answer because the service cannot be talked to, of which each answer makes up for ten: a service
    /// that takes one push now and then, and lets thousands wait, is none.
    private(set) var unanswered = 0
    /// How much of the file is done.
    private(set) var bytes = 0

    /// How many have an answer of the service.
    var answered: Int { accepted + rejected }
    var settled: Int { accepted + rejected + failed }

    mutating func add(_ result: Result<APNsResponse, APNsError>, line: Int? = nil, bytes: Int = 0) {
        self.bytes += bytes
        switch result {
        case .success(let response):
            guard let rejection = response.rejection else {
                count(isAnswer: true)
                accepted += 1
                return
            }
            // A service in trouble, or a stranger, has not answered either.
            count(isAnswer: rejection.kind != .tryLater && rejection.reason != nil)
            rejected += 1
            // A stranger may give as many reasons as there are pushes.
            let label = refusals.count < 100 || refusals[rejection.label] != nil ? rejection.label : "other reasons"
            refusals[label, default: Refusals(example: rejection)].count += 1
        case .failure(let error):
            failed += 1
            if error.meansNoService { count(isAnswer: false) }
            add(error, line)
        }
    }

    private mutating func count(isAnswer: Bool) { unanswered = isAnswer ? max(0, unanswered - 10) : unanswered + 1 }

    private mutating func add(_ error: APNsError, _ line: Int?) {
        var failures = failures[error.code, default: Failures(sentence: error.sentence)]
        failures.count += 1
        if error.mayHaveBeenProcessed { failures.unknownFates += 1 }
        if let line, failures.lines.count < 3 { failures.lines.append(line) }
        self.failures[error.code] = failures
    }

    /// 0 only when all were accepted; otherwise what weighs most.
    var exitStatus: ExitCode {
        let codes =
            refusals.values.map { ExitStatus.code(of: $0.example.kind) } + failures.keys.map { ExitStatus.code(of: $0) }
        let byWeight = [ExitStatus.notAllowed, ExitStatus.unreachable, ExitStatus.tryAgain, ExitStatus.refused]
        return byWeight.first { codes.contains($0) } ?? codes.first ?? .success
    }
}
