import ArgumentParser
import CarillonAPNs

/// Counts the results of the pushes of one command.
struct SendTally {
    /// Refusals with the same reason.
    struct Refusals {
        var count = 0
        /// One of the refusals, for the advice.
        let example: APNsRejection
    }

    /// Pushes without an answer for the same cause.
    struct Failures {
        var count = 0
        /// The number of these pushes that the service may still have accepted.
        var unknownOutcomes = 0
        /// The numbers of their first lines in the file.
        var lines: [Int] = []
        /// A description of the first failure.
        let sentence: String
    }

    private(set) var accepted = 0
    private(set) var rejected = 0
    private(set) var failed = 0
    private(set) var refusals: [String: Refusals] = [:]
    private(set) var failures: [APNsError.Code: Failures] = [:]
    /// The number of pushes without an answer because the service cannot be reached, minus ten for each answer. A service that
    /// answers rarely and leaves thousands of pushes waiting therefore counts as unavailable.
    private(set) var unanswered = 0
    /// The number of processed bytes of the file.
    private(set) var bytes = 0

    /// The number of pushes that the service answered.
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
            // A refusal by an unavailable service, or by another program, does not count as an answer.
            count(isAnswer: rejection.kind != .tryLater && rejection.reason != nil)
            rejected += 1
            // Another program can return a different reason for each push.
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
        if error.mayHaveBeenProcessed { failures.unknownOutcomes += 1 }
        if let line, failures.lines.count < 3 { failures.lines.append(line) }
        self.failures[error.code] = failures
    }

    /// 0 only if all pushes were accepted; otherwise the exit code of the most important failure.
    var exitStatus: ExitCode {
        let codes =
            refusals.values.map { ExitStatus.code(of: $0.example.kind) } + failures.keys.map { ExitStatus.code(of: $0) }
        let byWeight = [ExitStatus.notAllowed, ExitStatus.unreachable, ExitStatus.tryAgain, ExitStatus.refused]
        return byWeight.first { codes.contains($0) } ?? codes.first ?? .success
    }
}
