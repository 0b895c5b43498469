"""What the recording of a run is made of: strings and numbers only, never a tensor or a frame, so that recording
changes no lifetime.

Times are ``time.perf_counter`` seconds of the process that wrote the record; ``ProcessStarted`` ties that clock to
the calendar.  A compile id is Dynamo's, such as ``0/1``.
"""
