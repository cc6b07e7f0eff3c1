import CarillonCore
import CarillonWire

/// Services of devices, and requests between devices.
extension WorkloadTrack {
    func putService(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot), let service = ServiceID("com.example.transfer"),
            let version = ServiceVersion("1.\(operation.choice)")
        else { return Self.nothing }
        let keys = KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))
        let profile = ServiceProvider.Profile(
            name: "device", version: "\(operation.value)", offers: [ServiceOffer(service, version)], keys: keys)
        return text(try await store.putServiceProfile(profile, of: device.serial))
    }

    func removeService(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        return text(try await store.removeServiceProfile(of: device.serial))
    }

    func setClusterPlace(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let place = operation.choice == 0 ? ClusterPlace(priority: operation.slot + 1) : nil
        return text(try await store.setClusterPlace(place, of: device.id, app: app.serial))
    }

    func requestID(_ operation: WorkloadOperation) -> ServiceRequestID { ServiceRequestID(operation.id) }

    /// Stores a request with its envelope.
    func makeRequest(_ operation: WorkloadOperation) async throws -> String {
        guard let consumer = try await device(operation.slot), let provider = try await device(operation.other),
            consumer.serial != provider.serial,
            let reach = try await store.serviceProviders(
                for: consumer.serial, ServiceQuery(device: provider.id), limit: 1),
            let found = reach.providers.first
        else { return Self.nothing }
        let request = ServiceRequest(
            id: requestID(operation), envelope: operation.message(0), consumer: consumer.serial, consumerApp: consumer.app,
            provider: provider.serial, providerApp: provider.app, fingerprint: operation.bytes,
            expiresAt: now.adding(seconds: Self.messageSeconds))
        let parties = RequestUsers(consumer: reach.caller, provider: found.user)
        let envelope = envelope(
            operation, for: provider, from: request.origin, .service(.request, body: operation.bytes))
        let rules = AppendRules(effects: [.request(.made(request, between: parties))], consumer: consumer.serial)
        return text(try await store.commit([.append(envelope, rules)]))
    }

    /// Returns the first request between two devices that has no result.
    private func unfinished() async throws -> (request: ServiceRequest, consumer: Device, provider: Device)? {
        let devices = try await devices().map { $0.device }
        for consumer in devices {
            for provider in devices where provider.serial != consumer.serial {
                let requests = try await store.unfinishedRequests(of: consumer.serial, to: provider.serial, limit: 100)
                let first = requests.min { $0.envelope.position < $1.envelope.position }
                if let first { return (request: first, consumer: consumer, provider: provider) }
            }
        }
        return nil
    }

    /// Stores the next step of a request with the envelope that reports it.
    func continueRequest(_ operation: WorkloadOperation) async throws -> String {
        guard let (request, consumer, provider) = try await unfinished() else { return Self.nothing }
        let step: RequestStep
        let part: Envelope.ServicePart
        switch operation.value % 4 {
        case 0: (step, part) = (.received(request.serial), .notice)
        case 1: (step, part) = (.unwanted(request.serial), .notice)
        case 2: (step, part) = (.finished(request.serial, replyHash: nil, at: now), .notice)
        default: (step, part) = (.finished(request.serial, replyHash: operation.bytes, at: now), .reply)
        }
        let isForProvider = operation.value % 4 == 1
        let envelope = envelope(
            operation, for: isForProvider ? provider : consumer, from: request.origin,
            .service(part, body: operation.bytes))
        return text(try await store.commit([.append(envelope, AppendRules(effects: [.request(step)]))]))
    }

    func cancelRequest() async throws -> String {
        guard let (request, _, _) = try await unfinished() else { return Self.nothing }
        return text(try await store.cancelRequest(request.serial, at: now))
    }
}
