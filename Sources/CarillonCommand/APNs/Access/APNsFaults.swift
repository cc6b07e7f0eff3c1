import ArgumentParser
import CarillonAPNs
import NIOCore
import NIOPosix

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
    init(_ error: APNsError) { self.init(ExitStatus.code(of: error.code), error.sentence) }

    /// A refusal of the service, with what to do about it.
    init(_ rejection: APNsRejection) {
        self.init(ExitStatus.code(of: rejection.kind), "the service refused: \(rejection.words). \(Advice.of(rejection))")
    }
}

extension ExitStatus {
    static func code(of code: APNsError.Code) -> ExitCode {
        switch code {
        case .notificationInvalid, .payloadTooLarge, .tokenInvalid: refused
        case .credentialsInvalid: notAllowed
        case .configurationInvalid: .validationFailure
        case .connectionFailed, .connectionLost, .timedOut, .answerInvalid: unreachable
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
    /// The message with its cause, in the words of the command's options.
    var sentence: String {
        var message = message.last == "." ? String(message.dropLast()) : message
        if message.dropFirst().first?.isLowercase == true {
            message = message.prefix(1).lowercased() + message.dropFirst()
        }
        if code == .connectionFailed, message.contains("trustRoots") {
            let fact = message.split(separator: "; ").first.map(String.init) ?? message
            return
                "\(fact): no authority is known for it, or it is not valid now; if it is yours, give its authority with --ca FILE"
        }
        return cause.flatMap { Self.words($0, message) }.map { "\(message): \($0)" } ?? message
    }

    private static func words(_ cause: any Error, _ message: String) -> String? {
        switch cause {
        case let error as NIOConnectionError:
            guard let failure = error.connectionErrors.last else { return "the name \(error.host) is not known" }
            let place = ServiceAddress(host: error.host, port: error.port).place
            // Another place than the service's is the proxy.
            let proxy = message.contains("\(error.host):\(error.port)") ? "" : "the proxy \(place): "
            return words(failure.error, message).map { proxy + $0 }
        case let error as IOError: return systemWords(error)
        case let error as ChannelError:
            if case .connectTimeout = error { return "it does not answer" }
            return nil
        default: return handshakeWords(String(describing: cause))
        }
    }

    /// BoringSSL's names for what a person can do something about.
    private static func handshakeWords(_ fault: String) -> String? {
        let words = [
            "WRONG_VERSION_NUMBER": "it does not speak TLS", "NO_APPLICATION_PROTOCOL": "it does not speak HTTP/2",
            "ALERT_UNKNOWN_CA": "it does not know who signed the certificate",
            "ALERT_BAD_CERTIFICATE": "it does not take the certificate",
            "ALERT_CERTIFICATE_EXPIRED": "it takes the certificate for expired",
        ]
        return words.first { fault.contains($0.key) }?.value
    }

    private static func systemWords(_ error: IOError) -> String {
        switch error.errnoCode {
        case ECONNREFUSED: "nobody listens there"
        case EHOSTUNREACH, ENETUNREACH: "there is no way to it from here"
        case ECONNRESET: "it hung up"
        case ETIMEDOUT: "it does not answer"
        default: error.description
        }
    }
}
