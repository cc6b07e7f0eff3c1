/// Calls for devices of any home. Each method runs at the home of the device.
extension Services {
    /// The longest wait for the connections at another home.
    private static let longestWait = Duration.milliseconds(50)

    func deliver(_ delivery: ServiceDelivery) async -> InboxResult {
        if home.has(delivery.device) { return await append(delivery) }
        do {
            return try await others.ask(delivery)
        } catch {
            return .failed(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
        }
    }

    func withdraw(_ request: ServiceRequest) async throws -> RequestWithdrawal.Answer {
        let withdrawal = RequestWithdrawal(of: request)
        if home.has(request.provider) { return try await perform(withdrawal) }
        return try await others.ask(withdrawal)
    }

    func offer(_ request: FrontRequest) async throws -> Bool {
        if home.has(request.device) { return await deliverFront(request) }
        return try await others.ask(request)
    }

    /// Returns the connected devices among devices of other homes. Devices of a home that does not answer in time count as not
    /// connected.
    func connected(_ devices: [DeviceSerial]) async -> Set<DeviceSerial> {
        let parts = others.parts(of: devices) { Shard(of: $0) }
        let (answers, answering) = AsyncStream.makeStream(of: [DeviceSerial].self)
        for (shard, devices) in parts {
            // Ends with the answer of the home.
            Task { [others] in
                answering.yield((try? await others.ask(ConnectedDevices(at: shard, among: devices))) ?? [])
            }
        }
        let clock = Task {
            try? await Task.sleep(for: Self.longestWait)
            answering.finish()
        }
        defer { clock.cancel() }
        var connected: Set<DeviceSerial> = []
        var missing = parts.count
        for await answer in answers {
            connected.formUnion(answer)
            missing -= 1
            if missing == 0 { break }
        }
        return connected
    }

    /// Informs connected devices that the providers of their users changed. A device that is not connected reads its providers
    /// when it connects.
    func notify(_ devices: [DeviceSerial]) {
        providersChanged(for: devices)
        let elsewhere = devices.filter { !home.has($0) }
        if !elsewhere.isEmpty { others.hint(ProvidersChanged(devices: elsewhere)) }
    }

    // MARK: Answers to other homes

    /// Appends an event to the inbox of a device of this home.
    package func append(_ delivery: ServiceDelivery) async -> InboxResult {
        await home.deliver(keptBy: delivery.device) { id in delivery.envelope(id) }
    }

    /// Withdraws a request to a device of this home.
    package func perform(_ withdrawal: RequestWithdrawal) async throws -> RequestWithdrawal.Answer {
        guard try await home.takeBack(withdrawal.envelope, from: withdrawal.provider) else { return .delivered }
        return try await store.cancelRequest(withdrawal.request, at: time.now()) ? .cancelled : .finished
    }

    /// Offers a front request to the connection of a device of this home.
    package func deliverFront(_ request: FrontRequest) async -> Bool {
        await home.sendWithoutStoring(to: request.device) { id in request.envelope(id) }
    }

    /// Returns the devices with a connection at this home.
    package func connected(_ question: ConnectedDevices) -> [DeviceSerial] {
        question.devices.filter { home.isConnected($0) }
    }

    /// Informs the connections of devices of this home. Devices of other homes are ignored.
    package func inform(_ change: ProvidersChanged) { providersChanged(for: change.devices) }

    private func providersChanged(for devices: [DeviceSerial]) {
        for device in devices where home.has(device) { home.providersChanged(for: device) }
    }
}
