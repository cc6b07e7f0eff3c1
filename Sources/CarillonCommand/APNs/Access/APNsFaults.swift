import ArgumentParser
import CarillonAPNs

/// Turns what the library says into what a person at a command line can do about it.
func reportingAPNsFaults<Value>(_ work: () throws -> Value) throws -> Value {
    do {
        return try work()
    } catch let error as APNsError {
        throw CommandFault(error)
    }
}

func reportingAPNsFaults<Value>(_ work: () async throws -> Value) async throws -> Value {
    do {
        return try await work()
    } catch let error as APNsError {
        throw CommandFault(error)
    }
}

extension CommandFault {
    init(_ error: APNsError) {
        self.init(ExitStatus.code(of: error.code), error.sentence)
    }

    /// A refusal of the service, with what to do about it.
    init(_ rejection: APNsRejection) {
        self.init(ExitStatus.code(of: rejection.kind), "the service refused: \(rejection.words). \(rejection.advice)")
    }
}

extension ExitStatus {
    static func code(of code: APNsError.Code) -> ExitCode {
        switch code {
        case .notificationInvalid, .payloadTooLarge, .tokenInvalid: refused
        case .credentialsInvalid: notAllowed
        case .configurationInvalid: .validationFailure
        case .connectionFailed, .connectionLost, .timedOut, .notSent, .answerInvalid: unreachable
        case .queueFull: tryAgain
        default: .failure
        }
    }

    static func code(of kind: APNsRejection.Kind) -> ExitCode {
        switch kind {
        case .fixCredentials: notAllowed
        case .slowDown, .tryLater: tryAgain
        case .deadToken, .fixRequest, .unknown: refused
        }
    }
}

extension APNsError {
    /// The message in the words of the command's options.
    var sentence: String {
        var message = message.last == "." ? String(message.dropLast()) : message
        if message.dropFirst().first?.isLowercase == true {
            message = message.prefix(1).lowercased() + message.dropFirst()
        }
        return
            message
            .replacing(
                "set the client's trustRoots to its authority, if it is yours",
                with: "name its authority with --ca FILE, if it is yours"
            )
            .replacing("(alternativePort)", with: "(--port-2197)")
    }
}
