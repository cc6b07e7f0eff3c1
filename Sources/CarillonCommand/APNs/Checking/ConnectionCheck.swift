import ArgumentParser
import CarillonAPNs

/// Checks one connection, up to the end of the TLS handshake.
struct ConnectionCheck {
    /// The purpose of a connection, which determines the effect of its failure.
    enum Purpose {
        case push, alternative, management
    }

    let address: ServiceAddress
    let purpose: Purpose

    /// Returns checks for the addresses of the service. A custom push service has no second port.
    static func all(_ endpoint: APNsEndpointOptions, manage: ServiceAddress?) -> [ConnectionCheck] {
        var checks = [ConnectionCheck(address: endpoint.push, purpose: .push)]
        if endpoint.isApple {
            var other = endpoint.push
            other.port = other.port == 443 ? 2197 : 443
            checks.append(ConnectionCheck(address: other, purpose: .alternative))
        }
        if endpoint.isApple || manage != nil {
            checks.append(ConnectionCheck(address: manage ?? endpoint.management, purpose: .management))
        }
        return checks
    }

    func finding(_ client: APNsClient) async -> CheckFinding {
        do {
            try await client.warmUp(APNsEnvironment(address))
            let trust = address.isSecure ? "its certificate is trusted" : "it needs no TLS"
            return CheckFinding(
                subject: .connection, verdict: .ok,
                sentence: "\(address.place) is reachable, \(trust), and it supports HTTP/2\(use)", address: address)
        } catch {
            let isWrong = purpose == .push
            return CheckFinding(
                subject: .connection, verdict: isWrong ? .wrong : .warning, sentence: error.sentence + lack,
                address: address, exitStatus: ExitStatus.unreachable)
        }
    }

    private var use: String {
        switch purpose {
        case .push: ""
        case .alternative: " (the alternative port for pushes)"
        case .management: " (for broadcast channels)"
        }
    }

    private var lack: String {
        switch purpose {
        case .push: ""
        case .alternative: "; this is only the alternative port for pushes"
        case .management: "; this address is only needed for broadcast channels"
        }
    }
}
