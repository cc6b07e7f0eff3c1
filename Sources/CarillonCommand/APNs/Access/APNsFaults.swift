import ArgumentParser
import CarillonAPNs

/// Converts errors of the library to faults of a command, with advice for the user.
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

    /// A refusal of the service, with advice.
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
    /// The message, with the names of the command's options.
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
