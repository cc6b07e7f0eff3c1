import ArgumentParser
import CarillonCore
import CarillonServer
import CarillonWire

/// Ends a command with a sentence and an exit code.
struct CommandFault: Error {
    var code: ExitCode
    var message: String
    /// Further lines of the message.
    var details: [String]

    init(_ code: ExitCode, _ message: String, details: [String] = []) {
        self.code = code
        self.message = message
        self.details = details
    }

    init(_ refusal: Refusal) {
        let code: ExitCode =
            switch refusal.code.status {
            case 401, 403: ExitStatus.notAllowed
            case _ where refusal.code.isRetryable: ExitStatus.tryAgain
            default: ExitStatus.refused
            }
        self.init(code, "\(refusal.code.rawValue): \(refusal.detail)")
    }

    init(_ problem: ProblemDocument) {
        let code: ExitCode =
            switch problem.status {
            case 401, 403: ExitStatus.notAllowed
            case 408, 429, 500...: ExitStatus.tryAgain
            default: ExitStatus.refused
            }
        self.init(code, "\(problem.code): \(problem.detail)")
    }
}

/// Runs a command's work, and converts its errors to a sentence on standard error and an exit code.
///
/// - Parameters:
///   - sentence: The message if Ctrl-C ends the command; nil: the work handles Ctrl-C itself.
///   - cleanUp: Removes incomplete results after Ctrl-C.
func reportingFaults(
    interrupted sentence: String? = nil, cleanUp: @escaping @Sendable () -> Void = {}, _ work: () async throws -> Void
) async throws {
    let interruption = sentence.map { Interruption($0, cleanUp: cleanUp) }
    defer { interruption?.end() }
    do {
        try await work()
    } catch let fault as CommandFault {
        StandardError.print("carillon: \(fault.message)")
        for line in fault.details { StandardError.print(line) }
        throw fault.code
    } catch let refusal as Refusal {
        let fault = CommandFault(refusal)
        StandardError.print("carillon: \(fault.message)")
        throw fault.code
    } catch let fault as StoreOpenFault {
        StandardError.print("carillon: \(fault.description)")
        throw ExitStatus.dataDirectory
    } catch let fault as KeyRingFault {
        StandardError.print("carillon: \(fault.sentence)")
        throw ExitStatus.dataDirectory
    } catch let fault as KeyFile.Fault {
        StandardError.print("carillon: \(fault.sentence)")
        throw ExitStatus.noInput
    } catch let fault as StoreFault {
        StandardError.print("carillon: the data directory cannot be used: \(fault.message)")
        throw ExitStatus.dataDirectory
    } catch let error where !(error is ExitCode || error is CleanExit || error is ValidationError) {
        StandardError.print("carillon: \(FaultSentence.of(error))")
        throw ExitCode.failure
    }
}
