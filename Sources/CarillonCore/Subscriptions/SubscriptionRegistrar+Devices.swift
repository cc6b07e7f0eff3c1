extension SubscriptionRegistrar: DeviceListener {
    package func userChanged(of device: DeviceSerial) async throws { try await removeEnded(of: device) }
}
